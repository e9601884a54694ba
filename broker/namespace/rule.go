package namespace

import (
	"fmt"
	"math"
	"strings"
	"time"

	"switchboard/internal/wire"
)

// MinHistoryAge and MaxHistoryAge bound how long a namespace may keep its messages. Below, a
// message could be gone before a broker has looked whether the store still has it, or a client come
// back; above, the store would shorten it (queue.MaxChannelTTL).
const (
	MinHistoryAge = 5 * time.Minute
	MaxHistoryAge = 30 * 24 * time.Hour
)

// Rule is one namespace.
type Rule struct {
	// Name is "news" for one channel, "chat:*" for all behind a prefix, "inbox:{user}" for those named for a user,
	// "*" for whatever nothing else fits.
	Name string
	// Subscribe, Publish, Presence and History say for whom each is open besides the backend. Zero means nobody.
	Subscribe, Publish, Presence, History Access
	// NoPresence keeps no account of who is there, so that it costs nothing either.
	NoPresence bool
	// HistoryMessages is how many messages a channel holds at most. Zero means as many as any.
	HistoryMessages int
	// HistoryAge is how long they are held after the last one. Zero means as long as any.
	HistoryAge time.Duration
	// Message is the most bytes of a payload. Zero means as many as any.
	Message int
	// PublishRate is how many messages one connection may publish a second, all channels of the namespace
	// together. Zero means no limit.
	PublishRate float64

	prefix string
	kind   kind
	label  string // what a decision calls it
}

type kind uint8

const (
	exact  kind = iota
	prefix      // chat:*
	named       // inbox:{user}
)

const userPart = "{user}"

// prepare checks the rule and reads its name.
func (r *Rule) prepare() (err error) {
	isPattern := false
	if base, ok := strings.CutSuffix(r.Name, userPart); ok {
		r.kind = named
		if !strings.HasSuffix(base, ":") {
			return fmt.Errorf("a colon belongs before %s", userPart)
		}
		if r.prefix, _, err = parsePattern(base); err != nil {
			return err
		}
	} else if r.prefix, isPattern, err = parsePattern(r.Name); err != nil {
		return err
	} else if isPattern {
		r.kind = prefix
	}
	r.label = "namespace " + r.Name
	if wire.IsSystem(r.prefix) {
		return fmt.Errorf("channels that begin with $ are the system's own")
	}
	return r.check()
}

func (r *Rule) check() error {
	for _, do := range Actions {
		if r.open(do)&Named != 0 && r.kind != named {
			return fmt.Errorf("%s: named needs %s at the end of the namespace's name, as in inbox:%s", do, userPart, userPart)
		}
	}
	switch {
	case r.NoPresence && r.Presence != Nobody:
		return fmt.Errorf("presence: it is off and open to %s at once", r.Presence)
	case r.HistoryMessages < 0 || r.Message < 0:
		return fmt.Errorf("history_messages and message: none of them may be below zero")
	case r.HistoryAge != 0 && (r.HistoryAge < MinHistoryAge || r.HistoryAge > MaxHistoryAge):
		return fmt.Errorf("history_age: %v is not within %v and %v", r.HistoryAge, MinHistoryAge, MaxHistoryAge)
	case r.PublishRate < 0 || math.IsNaN(r.PublishRate) || math.IsInf(r.PublishRate, 0):
		return fmt.Errorf("publish_rate: %v is no rate", r.PublishRate)
	}
	return nil
}

// open is for whom the action is.
func (r *Rule) open(do Action) Access {
	switch do {
	case Subscribe:
		return r.Subscribe
	case Publish:
		return r.Publish
	case Presence:
		return r.Presence
	case History:
		return r.History
	}
	return Nobody
}

// Burst is how many messages may be published at once at PublishRate: a second's worth, one at least.
func (r *Rule) Burst() int { return max(1, int(math.Ceil(min(r.PublishRate, 1e6)))) }
