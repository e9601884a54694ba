package presence

import (
	"slices"
	"strings"

	"switchboard/broker/dialect"
	"switchboard/internal/wire"
	"switchboard/registry"
)

// maxNamed is the most clients that one coalesced event names.
const maxNamed = 100

// step is a join or leave that was kept to be coalesced.
type step struct {
	seq    int64
	member registry.Member
	joined bool
}

// coalescedChanges are the changes since the last coalesced event.
type coalescedChanges struct {
	messages dialect.Maker
	event    wire.Event // without the clients
	firstSeq int64      // seq of the first change
	steps    map[string][]step
}

// changesSince returns the clients that joined and left after seq, without self, sorted by client.
func (c *coalescedChanges) changesSince(seq int64, self string) (joined, left []registry.Member) {
	for client, steps := range c.steps {
		i := slices.IndexFunc(steps, func(s step) bool { return s.seq > seq })
		if i < 0 || client == self {
			continue
		}
		first, last := steps[i], steps[len(steps)-1]
		wasMember := !first.joined
		if wasMember && last.joined && first.member.User == last.member.User {
			continue // nothing changed; a client with another user counts as a leave and a join
		}
		if wasMember {
			left = append(left, first.member)
		}
		if last.joined {
			joined = append(joined, last.member)
		}
	}
	byClient := func(a, b registry.Member) int { return strings.Compare(a.Client, b.Client) }
	slices.SortFunc(joined, byClient)
	slices.SortFunc(left, byClient)
	return joined, left
}

// tooMany reports whether there are so many changes that the event names no clients at all.
func (c *coalescedChanges) tooMany() bool { return len(c.steps) > 10*maxNamed }

// message returns the event for the watcher self, which knows all changes up to seq. It is nil if
// nothing has changed for it.
func (c *coalescedChanges) message(seq int64, self string) *dialect.Message {
	event := c.event
	if !c.tooMany() {
		joined, left := c.changesSince(seq, self)
		if len(joined)+len(left) == 0 {
			return nil
		}
		if len(joined)+len(left) <= maxNamed {
			event.Joined, event.Left = WireMembers(joined), WireMembers(left)
		}
	}
	return c.messages.Event(event)
}

// differsFor reports whether the watcher self, which knows all changes up to seq, needs an event of
// its own. That is so if it has itself joined or left, or if it knows some of the changes already,
// from its subscription or from a snapshot.
func (c *coalescedChanges) differsFor(seq int64, self string) bool {
	_, changed := c.steps[self]
	return !c.tooMany() && (changed || seq >= c.firstSeq)
}
