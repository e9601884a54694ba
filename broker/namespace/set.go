package namespace

import (
	"fmt"
	"strings"

	"switchboard/internal/wire"
)

// Subject is who wants to do something.
type Subject struct {
	User    string // empty for a client without a user
	Grants  Grants // of its token
	Backend bool   // it holds an API key; User and Grants do not count
}

// Set is all namespaces. It does not change.
type Set struct {
	exact    map[string]*Rule
	prefixes map[string]*Rule // by what stands before * or {user}
	longest  int              // bytes of the longest prefix
	any      *Rule            // for every channel, without a look at its name; nil where namespaces are configured
}

// New returns the namespaces of rules. The error names the one that is wrong.
func New(rules []Rule) (*Set, error) {
	s := &Set{exact: map[string]*Rule{}, prefixes: map[string]*Rule{}}
	for _, rule := range rules {
		r := &rule
		if err := r.prepare(); err != nil {
			return nil, fmt.Errorf("%.210s: %w", r.Name, err)
		}
		into := s.prefixes
		if r.kind == exact {
			into = s.exact
		}
		if other := into[r.prefix]; other != nil {
			return nil, fmt.Errorf("%s and %s rule the same channels", other.Name, r.Name)
		}
		into[r.prefix] = r
		s.longest = max(s.longest, len(r.prefix))
	}
	return s, nil
}

// Open is the set of a broker that nobody told anything: everything is allowed.
func Open() *Set {
	return &Set{any: &Rule{
		Subscribe: Anyone, Publish: Anyone, Presence: Anyone, History: Anyone,
		label: "no keys and no namespaces are configured",
	}}
}

// Keyed is the set of a broker with keys and without namespaces: any user may subscribe, and only the
// backend publishes, unless clients may.
func Keyed(clientsPublish bool) *Set {
	r := &Rule{Subscribe: Users, Presence: Users, History: Users, label: "no namespaces are configured"}
	if clientsPublish {
		r.Publish = Users
	}
	return &Set{any: r}
}

// Configured says whether there are namespaces, and not only a default.
func (s *Set) Configured() bool { return s.any == nil }

// For is the rule of a channel, or nil when it is closed.
func (s *Set) For(channel string) *Rule {
	if s.any != nil {
		if wire.IsSystem(channel) {
			return nil
		}
		return s.any
	}
	if r := s.exact[channel]; r != nil {
		return r
	}
	// A prefix ends with a colon, or is empty: only these are tried, the longest first.
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
	return s.prefixes[""]
}

// verdict is why somebody may do something, or not.
type verdict uint8

const (
	badName   verdict = iota // it can be no channel's
	system                   // it is the system's own
	closed                   // no namespace fits
	pattern                  // there is a * in it
	bare                     // it is the prefix, and nothing more
	off                      // nobody is told who is there
	notOpen                  // for this subject
	byRule                   // it is open to the subject
	byBackend                // it is the backend
)

func (v verdict) allowed() bool { return v >= byRule }

// Allows is Decide without the words: it allocates nothing.
func (s *Set) Allows(who Subject, do Action, channel string) bool {
	v, _, _ := s.judge(who, do, channel)
	return v.allowed()
}

// Decide says whether who may do that on the channel, and why in words for a person: it names the
// namespace and the rule, and nothing that is secret.
func (s *Set) Decide(who Subject, do Action, channel string) (allowed bool, why string) {
	v, r, by := s.judge(who, do, channel)
	switch v {
	case badName:
		why = wording(wire.CheckName("channel", channel)).Error()
	case system:
		why = "it is the system's own"
	case closed:
		why = "no namespace fits the name, so the channel is closed"
	case pattern:
		why = "a name with * is a pattern and no channel"
	case bare:
		why = r.label + ": nothing stands behind the prefix"
	case off:
		why = r.label + ": presence is off"
	case byBackend:
		why = r.label + ": the backend may"
	case byRule:
		why = fmt.Sprintf("%s: %s is open to %s", r.label, do, by)
	case notOpen:
		why = fmt.Sprintf("%s: %s is open to %s%s", r.label, do, r.open(do), missing(who, r, r.open(do), channel))
	}
	return v.allowed(), why
}

// MayFollow says whether who may be told when a user comes online and goes: himself always, everybody in an open
// broker, else by a grant of presence on $user:<name>.
func (s *Set) MayFollow(who Subject, user string) bool {
	return s.any != nil && s.any.Presence&Anyone != 0 || who.User != "" && who.User == user ||
		who.Grants.allow(Presence, wire.UserChannel+user)
}

// judge also gives the rule that decided, and for byRule whom of those it is open to the subject is.
func (s *Set) judge(who Subject, do Action, channel string) (verdict, *Rule, Access) {
	if wire.CheckName("channel", channel) != nil {
		return badName, nil, Nobody
	}
	r := s.For(channel)
	switch {
	case r == nil && wire.IsSystem(channel):
		return system, nil, Nobody
	case r == nil:
		return closed, nil, Nobody
	case s.any == nil && strings.Contains(channel, "*"):
		return pattern, r, Nobody
	case s.any == nil && r.kind != exact && len(channel) == len(r.prefix):
		return bare, r, Nobody
	case r.NoPresence && do == Presence:
		return off, r, Nobody
	case who.Backend:
		return byBackend, r, Nobody
	}
	if by := s.fits(who, r, r.open(do), do, channel); by != Nobody {
		return byRule, r, by
	}
	return notOpen, r, Nobody
}

// fits is the first of those for whom it is open that the subject is one of, or Nobody.
func (s *Set) fits(who Subject, r *Rule, open Access, do Action, channel string) Access {
	switch {
	case open&Anyone != 0:
		return Anyone
	case open&Users != 0 && who.User != "":
		return Users
	case open&Named != 0 && who.User != "" && channel[len(r.prefix):] == who.User:
		return Named
	case open&Grant != 0 && who.User != "" && who.Grants.allow(do, channel): // grants are a user's
		return Grant
	}
	return Nobody
}

// missing is what a subject lacks that was refused.
func missing(who Subject, r *Rule, open Access, channel string) string {
	switch {
	case open == Nobody:
		return " but the backend"
	case who.User == "":
		return ", and the client has no user"
	case open&Grant != 0:
		return ", and no grant of the token fits"
	case open&Named != 0:
		return fmt.Sprintf(", which is %s", channel[len(r.prefix):])
	}
	return ""
}
