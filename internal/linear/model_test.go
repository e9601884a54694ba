package linear

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"

	"switchboard/internal/replay"
	"switchboard/queue"
)

// timeOf returns the store's time at which an id was assigned, in Unix milliseconds.
func timeOf(id int64) int64 { return replay.Time(id).UnixMilli() }

// field is one field in the model. It is never modified in place.
type field struct {
	value       string
	id          int64
	lease       int64 // end of the lease, 0 for none
	away, grace int64 // as in state.Field
	holder      string
	parent      string
	owners      []string // sorted
}

// until returns when the field ends, 0 for never.
func (f field) until() int64 {
	if f.away > 0 && (f.lease == 0 || f.away < f.lease) {
		return f.away
	}
	return f.lease
}

// looksLike reports whether an entry is needed to get from g to f.
func (f field) looksLike(g field) bool {
	return f.id == g.id && f.away == g.away && slices.Equal(f.owners, g.owners)
}

// keyed is what the model knows of an idempotency key.
type keyed struct {
	id      int64
	numbers map[string]int64
}

// snapshot is the model at one moment. It is never modified.
type snapshot struct {
	contents
	last   int64 // id of the last entry of the log
	clock  int64 // the store's clock is not earlier, Unix ms
	keys   map[string]keyed
	before *snapshot // at the entry before the last one
	losses int       // how many losses have happened
}

// newModel returns the model of one channel.
func newModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return &snapshot{} },
		Step: func(s, c, _ any) (bool, any) {
			next := s.(*snapshot).step(c.(*call))
			return next != nil, next
		},
		Equal: func(a, b any) bool {
			// The log before an entry decides the rest, except for the owners.
			s, t := a.(*snapshot), b.(*snapshot)
			return s.last == t.last && s.clock == t.clock && s.losses == t.losses && maps.Equal(s.sessions, t.sessions)
		},
		DescribeOperation: func(c, _ any) string { return fmt.Sprint(c) },
		DescribeState:     func(s any) string { return fmt.Sprint(s) },
	}
}

// step returns the model after a call, or nil if its answer is impossible now.
func (s *snapshot) step(c *call) *snapshot {
	switch c.kind {
	case update:
		return s.update(c)
	case read:
		return s.read(c)
	case sweep:
		return s.expire(c.appended)
	case note: // a message without fields, or a marker of a loss
		return s.entry(c.appended)
	case ownerStep:
		return s.ownerStep(c)
	case unknown:
		return s.unknown(c)
	case loss:
		return s.lose(c.keep)
	}
	panic("unknown kind of call")
}

// entry returns the model after an entry that changes nothing.
func (s *snapshot) entry(a queue.Appended) *snapshot {
	if a.ID <= s.last || a.Prev != s.last || timeOf(a.ID) < s.clock {
		return nil
	}
	next := *s
	next.last, next.clock, next.before = a.ID, timeOf(a.ID), s
	return &next
}

// due reports whether a field has ended at the given time.
func (f field) due(now int64) bool { return f.until() > 0 && f.until() <= now }

// anyDue reports whether a field that is due was not removed.
func (s *snapshot) anyDue(now int64) bool {
	for _, f := range s.fields {
		if f.due(now) {
			return true
		}
	}
	return false
}

// expire returns the model after a call that only removed the fields that are due.
func (s *snapshot) expire(a queue.Appended) *snapshot {
	if a.ID == 0 {
		if s.anyDue(s.clock) {
			return nil
		}
		return s
	}
	next := s.entry(a)
	if next == nil || !s.anyDue(next.clock) {
		return nil
	}
	next.contents = s.contents.clone()
	next.contents.expire(next.clock)
	return next
}

// update returns the model after an update.
func (s *snapshot) update(c *call) *snapshot {
	a, u := c.appended, c.push.Update
	if first, found := s.keys[c.push.Key]; c.push.Key != "" && found != a.Duplicate {
		return nil
	} else if a.Duplicate {
		if a.ID != first.id || !maps.Equal(a.Numbers, first.numbers) || c.refusal != nil {
			return nil
		}
		return s
	}
	if c.refusal != nil {
		after := s.expire(a)
		if after == nil || !after.refuses(u, c.refusal) {
			return nil
		}
		return after
	}
	next := s.entry(a)
	if next == nil {
		return nil
	}
	before := s.contents.clone()
	before.expire(next.clock)
	r := decide(before, u, a.ID)
	if r.code != "" || !maps.Equal(r.numbers, a.Numbers) {
		return nil
	}
	next.contents = r.after
	if c.push.Key != "" {
		if next.keys = maps.Clone(s.keys); next.keys == nil {
			next.keys = make(map[string]keyed)
		}
		next.keys[c.push.Key] = keyed{a.ID, r.numbers}
	}
	return next
}

// read returns the model after a page was read.
func (s *snapshot) read(c *call) *snapshot {
	clock := c.page.Clock
	if clock == 0 {
		clock = s.clockOf(c)
	}
	if c.page.ID != s.last || clock < s.clock {
		return nil
	}
	live := cloned(s.fields) // a part does not end with its parent until an entry says so
	maps.DeleteFunc(live, func(_ string, f field) bool { return f.due(clock) })
	names, next := pageNames(live, c.query)
	if next != c.page.Next || len(names) != len(c.page.Fields) {
		return nil
	}
	for i, name := range names {
		if got := c.page.Fields[i]; got.Name != name || !live[name].shownAs(got.Field) {
			return nil
		}
	}
	after := *s
	after.clock = clock
	return &after
}

// clockOf returns the earliest clock of a page from a broker, which does not show it: at that time
// the fields that the page should have and has not are due.
func (s *snapshot) clockOf(c *call) int64 {
	shown := make(map[string]bool)
	for _, f := range c.page.Fields {
		shown[f.Name] = true
	}
	query := c.query
	query.Limit = 0
	names, _ := pageNames(s.fields, query)
	clock := s.clock
	for _, name := range names {
		if !shown[name] && (c.page.Next == "" || name < c.page.Next) {
			clock = max(clock, s.fields[name].until())
		}
	}
	return clock
}

// pageNames returns the names of the fields that a page has, and its Next.
func pageNames(live map[string]field, q queue.StateRead) (names []string, next string) {
	if len(q.Fields) > 0 {
		for _, name := range q.Fields {
			if _, found := live[name]; found {
				names = append(names, name)
			}
		}
		return names, ""
	}
	for _, name := range slices.Sorted(maps.Keys(live)) {
		if strings.HasPrefix(name, q.Prefix) && name > q.Cursor {
			names = append(names, name)
		}
	}
	if q.Limit > 0 && len(names) > q.Limit {
		names = names[:q.Limit]
		return names, names[len(names)-1]
	}
	return names, ""
}

// lose returns the model after a failover that kept the entries up to an id.
func (s *snapshot) lose(keep int64) *snapshot {
	kept := s
	for kept != nil && kept.last > keep {
		kept = kept.before
	}
	if kept == nil || kept.last != keep {
		return nil
	}
	after := *kept
	after.clock, after.losses = s.clock, s.losses+1
	return &after
}
