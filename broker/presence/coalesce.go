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

// after returns the member after the step, nil if it has left.
func (s *step) after() *registry.Member {
	if s.joined {
		return &s.member
	}
	return nil
}

// before returns the member before the step, nil if there was none.
func (s *step) before() *registry.Member {
	if s.joined {
		return nil
	}
	return &s.member
}

// states calls yield with what the watcher may know of a client, nil for no member: the state
// before the steps, which are those after k.seq, and the states that a page has shown.
func (k *knowledge) states(steps []step, yield func(*registry.Member)) {
	yield(steps[0].before())
	if k.pagedTo == 0 {
		return
	}
	from, to := k.seq+int64(k.pagedFrom), k.seq+int64(k.pagedTo)
	for i := range steps {
		replaced := i+1 < len(steps) && steps[i+1].seq <= from
		if steps[i].seq <= to && !replaced {
			yield(steps[i].after())
		}
	}
}

// changesSince returns the clients that joined and left, without self, sorted by client. A client
// that is again what the watcher knows has not changed. A client with another user counts as a
// leave and a join.
func (c *coalescedChanges) changesSince(k knowledge, self string) (joined, left []registry.Member) {
	for client, steps := range c.steps {
		i := slices.IndexFunc(steps, func(s step) bool { return s.seq > k.seq })
		if i < 0 || client == self {
			continue
		}
		now := steps[len(steps)-1].after()
		var gone *registry.Member
		join := false
		k.states(steps[i:], func(known *registry.Member) {
			if same := now != nil && known != nil && now.User == known.User; same {
				return
			}
			if known != nil {
				gone = known
			}
			join = now != nil
		})
		if gone != nil {
			left = append(left, *gone)
		}
		if join {
			joined = append(joined, *now)
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
	return !c.tooMany() && (changed || k.seq+int64(k.pagedTo) >= c.firstSeq)
}
