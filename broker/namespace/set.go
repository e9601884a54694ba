package namespace

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"switchboard/internal/wire"
)

// Subject is a client or the backend that does an action.
type Subject struct {
	User   string // empty for a client without a user
	Grants Grants // of its token
	// Subscribed are the channels to which the backend has subscribed the client. It may subscribe to
	// those that are not closed, whatever the rules say.
	Subscribed []string
	Backend    bool // it has an API key; User and Grants are ignored
	// Open means that the broker verifies no tokens: a client without a user may claim fields, under
	// its client id.
	Open bool
}

// Set holds all namespaces. It is immutable.
type Set struct {
	exact       map[string]*Rule
	prefixes    map[string]*Rule // by the name without * or {user}
	longest     int              // bytes of the longest prefix
	defaultRule *Rule            // applies to every other channel; nil if namespaces are configured
}

// New returns the set of rules. The error names the invalid rule.
func New(rules []Rule) (*Set, error) {
	s := &Set{exact: map[string]*Rule{}, prefixes: map[string]*Rule{}}
	for _, rule := range rules {
		r := &rule
		if err := r.prepare(); err != nil {
			return nil, fmt.Errorf("%.210s: %w", r.Name, err)
		}
		into := s.prefixes
		if r.kind == kindExact {
			into = s.exact
		}
		if other := into[r.prefix]; other != nil {
			return nil, fmt.Errorf("%s and %s match the same channels", other.Name, r.Name)
		}
		into[r.prefix] = r
		s.longest = max(s.longest, len(r.prefix))
	}
	return s, nil
}

// With returns the set of these namespaces and more. The error names a rule that is invalid, or
// that matches the same channels as another one.
func (s *Set) With(rules []Rule) (*Set, error) {
	if len(rules) == 0 {
		return s, nil
	}
	more, err := New(rules)
	if err != nil {
		return nil, err
	}
	all := &Set{
		exact: maps.Clone(s.exact), prefixes: maps.Clone(s.prefixes),
		longest: max(s.longest, more.longest), defaultRule: s.defaultRule,
	}
	for _, m := range []struct{ into, from map[string]*Rule }{{all.exact, more.exact}, {all.prefixes, more.prefixes}} {
		for name, rule := range m.from {
			if other := m.into[name]; other != nil {
				return nil, fmt.Errorf("%s and %s match the same channels", other.Name, rule.Name)
			}
			m.into[name] = rule
		}
	}
	return all, nil
}

// Open returns the set of a broker without keys and namespaces. It allows everything.
func Open() *Set {
	return withoutNamespaces("no keys and no namespaces are configured", Anyone, Anyone, Anyone)
}

// Keyed returns the set of a broker with keys and without namespaces. Every user may subscribe, and
// if clientsPublish is true, may publish and write all fields that do not begin with $.
func Keyed(clientsPublish bool) *Set {
	publish := BackendOnly
	if clientsPublish {
		publish = Users
	}
	return withoutNamespaces("no namespaces are configured", Users, publish, BackendOnly)
}

// withoutNamespaces returns a set with one rule for all channels.
func withoutNamespaces(label string, read, publish, durable Access) *Set {
	r := &Rule{
		Subscribe: read, Publish: publish, Presence: read, History: read, State: read, Durable: durable,
		Fields: []FieldRule{{Pattern: "*", Write: publish}}, label: label,
	}
	if err := r.prepareFields(); err != nil {
		panic(err) // the pattern is a constant
	}
	return &Set{exact: map[string]*Rule{}, prefixes: map[string]*Rule{}, defaultRule: r}
}

// Configured reports whether there are namespaces, instead of the default of Open or Keyed.
func (s *Set) Configured() bool { return s.defaultRule == nil }

// For returns the rule of a channel, or nil if the channel is closed.
func (s *Set) For(channel string) *Rule {
	if r := s.exact[channel]; r != nil {
		return r
	}
	// Every prefix is empty or ends with a colon. Try the longest first.
	for end := min(len(channel), s.longest); end > 0; {
		colon := strings.LastIndexByte(channel[:end], ':')
		if colon < 0 {
			break
		}
		if r := s.prefixes[channel[:colon+1]]; r != nil {
			return r
		}
		end = colon
	}
	if wire.IsSystem(channel) {
		return nil
	}
	if s.defaultRule != nil {
		return s.defaultRule
	}
	return s.prefixes[""]
}

// AliasField returns the By of a channel with presence, or "".
func (s *Set) AliasField(channel string) string {
	if r := s.For(channel); r != nil && !r.NoPresence {
		return r.By
	}
	return ""
}

// reason is why a subject may do an action, or may not.
type reason uint8

const (
	invalidName    reason = iota // not a valid channel name
	systemChannel                // a channel of the system
	noNamespace                  // no namespace matches
	isPatternName                // the name contains *
	prefixOnly                   // the name ends after the rule's prefix
	presenceOff                  // the rule turns presence off
	notOpen                      // the rule does not allow this subject
	byRule                       // the rule allows this subject
	byBackend                    // the subject is the backend
	bySubscription               // the backend subscribes this subject
)

func (r reason) allowed() bool { return r >= byRule }

// Allows is Decide without the explanation. It allocates nothing.
func (s *Set) Allows(subject Subject, action Action, channel string) bool {
	why, _, _ := s.decide(subject, action, channel)
	return why.allowed()
}

// Decide reports whether the subject may do the action on the channel, and explains it in a text
// for people. The text names the namespace and the clients that it allows. It contains no secrets.
func (s *Set) Decide(subject Subject, action Action, channel string) (allowed bool, why string) {
	reason, r, by := s.decide(subject, action, channel)
	switch reason {
	case presenceOff:
		why = r.label + ": presence is off"
	case byBackend:
		why = r.label + ": the backend may"
	case bySubscription:
		why = r.label + ": the backend subscribes the client"
	case byRule:
		why = fmt.Sprintf("%s: %s is open to %s", r.label, action, by)
	case notOpen:
		why = fmt.Sprintf("%s: %s is open to %s", r.label, action, deniedDetail(subject, r, r.access(action), channel))
	default:
		why = reason.text(r, channel)
	}
	return reason.allowed(), why
}

// text explains why a channel is closed. The other reasons have the text "".
func (why reason) text(r *Rule, channel string) string {
	switch why {
	case invalidName:
		return messageOf(wire.CheckName("channel", channel)).Error()
	case systemChannel:
		return "it is a system channel"
	case noNamespace:
		return "no namespace fits the name, so the channel is closed"
	case isPatternName:
		return "a name with * is a pattern and not a channel"
	case prefixOnly:
		return r.label + ": nothing follows the prefix"
	}
	return ""
}

// MayFollow reports whether the subject may receive the online status of a user. A user may follow
// itself. In an open broker every client may follow every user. Otherwise the token must grant
// presence on $user:<name>.
func (s *Set) MayFollow(subject Subject, user string) bool {
	allowed, _ := s.DecideFollow(subject, user)
	return allowed
}

// DecideFollow is MayFollow, and explains the decision in a text for people, like Decide.
func (s *Set) DecideFollow(subject Subject, user string) (allowed bool, why string) {
	switch {
	case s.defaultRule != nil && s.defaultRule.Presence&Anyone != 0:
		return true, "every client may follow every user"
	case subject.User != "" && subject.User == user:
		return true, "a user may follow itself"
	case subject.Grants.allows(Presence, wire.UserChannelPrefix+user):
		return true, "the token grants presence on the channel"
	}
	return false, "only the user itself may follow it, and clients whose token grants presence on the channel"
}

// resolve returns the rule of a channel and byRule, or why the channel is closed.
func (s *Set) resolve(channel string) (reason, *Rule) {
	if wire.CheckName("channel", channel) != nil {
		return invalidName, nil
	}
	r := s.For(channel)
	switch {
	case r == nil && wire.IsSystem(channel):
		return systemChannel, nil
	case r == nil:
		return noNamespace, nil
	case r != s.defaultRule && strings.Contains(channel, "*"):
		return isPatternName, r
	case r != s.defaultRule && r.kind != kindExact && len(channel) == len(r.prefix):
		return prefixOnly, r
	}
	return byRule, r
}

// decide returns the reason, the rule that decided, and for byRule the part of its access that
// matched.
func (s *Set) decide(subject Subject, action Action, channel string) (reason, *Rule, Access) {
	why, r := s.resolve(channel)
	switch {
	case !why.allowed():
		return why, r, 0
	case r.NoPresence && action == Presence:
		return presenceOff, r, 0
	case subject.Backend:
		return byBackend, r, 0
	case action == Subscribe && slices.Contains(subject.Subscribed, channel):
		return bySubscription, r, 0
	}
	if by := s.matchAccess(subject, r, r.access(action), action, channel); by != 0 {
		return byRule, r, by
	}
	return notOpen, r, 0
}

// matchAccess returns the first part of access that includes the subject, or 0.
func (s *Set) matchAccess(subject Subject, r *Rule, access Access, action Action, channel string) Access {
	switch {
	case access&Anyone != 0:
		return Anyone
	case access&Users != 0 && subject.User != "":
		return Users
	case access&Claim != 0 && (subject.User != "" || subject.Open):
		return Claim
	case access&Named != 0 && subject.User != "" && channel[len(r.prefix):] == subject.User:
		return Named
	case access&Grant != 0 && subject.User != "" && subject.Grants.allows(action, channel): // grants need a user
		return Grant
	}
	return 0
}

// deniedDetail returns access as text, and why it does not include the subject.
func deniedDetail(subject Subject, r *Rule, access Access, channel string) string {
	switch {
	case access == BackendOnly:
		return "the backend only"
	case subject.User == "":
		return access.String() + ", and the client has no user"
	case access&Grant != 0:
		return access.String() + ", and no grant of the token fits"
	case access&Named != 0:
		return fmt.Sprintf("%s, which is %s", access, channel[len(r.prefix):])
	}
	return access.String()
}
