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

// changesSince returns the clients that joined and left after k.seq, without self, sorted by
// client.
func (c *coalescedChanges) changesSince(k knowledge, self string) (joined, left []registry.Member) {
	// A page shows a client as it was between two steps. So the watcher needs the last step, also if
	// the client is now what it was before the first one.
	paged := k.paged >= c.firstSeq
	for client, steps := range c.steps {
		i := slices.IndexFunc(steps, func(s step) bool { return s.seq > k.seq })
		if i < 0 || client == self {
			continue
		}
		first, last := steps[i], steps[len(steps)-1]
		wasMember := !first.joined
		sameUser := first.member.User == last.member.User
		if wasMember && last.joined && sameUser && !paged {
			continue // nothing changed; a client with another user counts as a leave and a join
		}
		if wasMember && !(last.joined && sameUser) || paged && !last.joined {
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

// message returns the event for the watcher self. It is nil if nothing has changed for it.
func (c *coalescedChanges) message(k knowledge, self string) *dialect.Message {
	event := c.event
	if !c.tooMany() {
		joined, left := c.changesSince(k, self)
		if len(joined)+len(left) == 0 {
			return nil
		}
		if len(joined)+len(left) <= maxNamed {
			event.Joined, event.Left = WireMembers(joined), WireMembers(left)
		}
	}
	return c.messages.Event(event)
}

// differsFor reports whether the watcher self needs an event of its own. That is so if it has
// itself joined or left, or if it knows some of the changes already, from its subscription, from a
// snapshot or from a page.
func (c *coalescedChanges) differsFor(k knowledge, self string) bool {
	_, changed := c.steps[self]
	return !c.tooMany() && (changed || max(k.seq, k.paged) >= c.firstSeq)
}
