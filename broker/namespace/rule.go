package namespace

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// MinHistoryAge and MaxHistoryAge bound how long a namespace may keep its messages. With a shorter
// age a message could expire before a client reconnects, or before a broker checks whether the
// store still has it. The store would shorten a longer age (queue.MaxChannelTTL).
const (
	MinHistoryAge = 5 * time.Minute
	MaxHistoryAge = 30 * 24 * time.Hour
)

// Rule is one namespace.
type Rule struct {
	// Name is "news" for one channel, "chat:*" for all channels with the prefix chat:, "inbox:{user}"
	// for a channel of each user, or "*" for all channels that no other namespace matches.
	Name string
	// Subscribe, Publish, Presence and History are the clients that may do each action. The backend
	// always may. Zero means no clients.
	Subscribe, Publish, Presence, History Access
	// NoPresence turns presence off, and its cost.
	NoPresence bool
	// HistoryMessages is the most messages that a channel keeps. Zero means the broker's limit.
	HistoryMessages int
	// HistoryAge is how long a channel's messages are kept after the last one. Zero means the
	// broker's time.
	HistoryAge time.Duration
	// Message is the most bytes of a payload. Zero means the broker's limit.
	Message int
	// PublishRate is the most messages per second that one connection may publish to all channels of
	// the namespace. Zero means no limit.
	PublishRate float64

	// State are the clients that may read the state. The backend always may. Zero means no clients.
	State Access
	// StateKeep is how long the state is kept after its last update. KeepForever means that it never
	// ends. Zero means DefaultStateKeep.
	StateKeep time.Duration
	// Grace is how long an owned field stays after its last owner has left. GraceNever means that it
	// stays. Zero means DefaultGrace.
	Grace time.Duration
	// Fields say who may write which fields. A field that fits no pattern belongs to the backend.
	Fields []FieldRule
	// Needs is a field that must be live when a client publishes, such as $$user/{user}, where {user}
	// is the escaped name of the client's user. The store checks it. Zero means no such field.
	Needs string
	// Durable are the clients that may wait for a replica with a publish, which blocks one of the
	// broker's workers up to a second. The backend always may. Zero means no clients.
	Durable Access
	// By is a field, such as $$user/{user}, whose value is shown as `by` of a client's change in place
	// of the client's id. Then all clients that may read the state see `by`. The value is a JSON
	// string; without the field, there is no `by`. Zero means the client's id, for clients that may
	// see presence. The presence of the channels shows users in the same way: members and the here
	// values have the field's value in place of the client's id, and neither user nor info. Clients of
	// the same user are one member, and clients without the field are none.
	By string
	// FieldsGone sends the event fields_gone to the backend when fields end. Zero means no events.
	FieldsGone bool

	fields []FieldRule // Fields by precedence
	prefix string      // the name without * or {user}
	kind   kind
	label  string // names the rule in the text of Decide
}

type kind uint8

const (
	kindExact  kind = iota // news
	kindPrefix             // chat:*
	kindUser               // inbox:{user}
)

const userPlaceholder = "{user}"

// prepare parses the rule's name and checks the rule.
func (r *Rule) prepare() (err error) {
	isPattern := false
	if base, ok := strings.CutSuffix(r.Name, userPlaceholder); ok {
		r.kind = kindUser
		if !strings.HasSuffix(base, ":") {
			return fmt.Errorf("a colon belongs before %s", userPlaceholder)
		}
		if r.prefix, _, err = parsePattern(base); err != nil {
			return err
		}
	} else if r.prefix, isPattern, err = parsePattern(r.Name); err != nil {
		return err
	} else if isPattern {
		r.kind = kindPrefix
	}
	r.label = "namespace " + r.Name
	if wire.IsSystem(r.prefix) {
		return fmt.Errorf("channels that begin with $ are system channels")
	}
	return r.check()
}

func (r *Rule) check() error {
	for _, action := range Actions {
		switch access := r.access(action); {
		case access&Named != 0 && r.kind != kindUser:
			return fmt.Errorf("%s: %w", action, errNamed)
		case access&Claim != 0:
			return fmt.Errorf("%s: claim is for fields only", action)
		}
	}
	switch {
	case r.NoPresence && r.Presence != BackendOnly:
		return fmt.Errorf("presence: it is off, so it cannot be open to %s", r.Presence)
	case r.HistoryMessages < 0 || r.Message < 0:
		return fmt.Errorf("history_messages and message must not be below zero")
	case r.HistoryAge != 0 && (r.HistoryAge < MinHistoryAge || r.HistoryAge > MaxHistoryAge):
		return fmt.Errorf("history_age: %v is not within %v and %v", r.HistoryAge, MinHistoryAge, MaxHistoryAge)
	case r.PublishRate < 0 || math.IsNaN(r.PublishRate) || math.IsInf(r.PublishRate, 0):
		return fmt.Errorf("publish_rate: %v is not a rate", r.PublishRate)
	case r.StateKeep < 0 && r.StateKeep != KeepForever:
		return fmt.Errorf("state_keep: %v is below zero", r.StateKeep)
	case r.Grace < 0 && r.Grace != GraceNever || r.Grace > MaxLease:
		return fmt.Errorf("grace: %v is not within 0 and %v", r.Grace, MaxLease)
	}
	for name, field := range map[string]string{"needs": r.Needs, "by": r.By} {
		if err := state.CheckName(strings.ReplaceAll(field, userPlaceholder, "amy")); field != "" && err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return r.prepareFields()
}

// NeededField returns the field that must be live when a user publishes, or "".
func (r *Rule) NeededField(user string) string { return FieldOf(r.Needs, user) }

// ByField returns the field that is shown as the client of a change by a user, or "".
func (r *Rule) ByField(user string) string { return FieldOf(r.By, user) }

// FieldOf returns the name of a field in which {user} stands for a user.
func FieldOf(field, user string) string {
	return strings.ReplaceAll(field, userPlaceholder, state.Escape(user))
}

var errNamed = errors.New("named needs {user} at the end of the namespace's name, as in inbox:{user}")

// access returns the clients that may do the action.
func (r *Rule) access(action Action) Access {
	switch action {
	case Subscribe:
		return r.Subscribe
	case Publish:
		return r.Publish
	case Presence:
		return r.Presence
	case History:
		return r.History
	case State:
		return r.State
	case Durable:
		return r.Durable
	}
	return BackendOnly
}

// Burst returns the burst of PublishRate: the messages of one second, and at least one.
func (r *Rule) Burst() int { return max(1, int(math.Ceil(min(r.PublishRate, 1e6)))) }
