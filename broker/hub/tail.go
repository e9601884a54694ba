package hub

import (
	"slices"
	"sort"

	"switchboard/broker/dialect"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// Limits of the tail. It holds what a subscriber needs that keeps up, and a little more for one
// that was briefly slow. Older messages come from the store.
const (
	maxTailMessages = 256
	maxTailBytes    = 256 << 10
)

// message makes the message of an entry of the channel's queue: of its payload, or of the gap that a
// loss marker stands for.
func (c *Channel) message(id int64, data []byte) *dialect.Message {
	if after, to, lost := queue.Loss(data); lost {
		return c.gap(id, after, to)
	}
	return c.hub.opts.Messages.Message(c.Name, id, data)
}

// gap is a separate function because its arguments escape to the heap.
func (c *Channel) gap(id, after, to int64) *dialect.Message {
	m := c.hub.opts.Messages.Event(wire.Event{Type: wire.TypeGap, Channel: c.Name, After: &after, ID: &to})
	m.ID = id
	return m
}

// tail is an unbroken sequence of a channel's newest messages. It is immutable. A new message makes
// a new tail, which may share the array of the old one.
type tail struct {
	base    int64 // the id before the first entry
	entries []*dialect.Message
	last    int64 // the id of the last entry, or base when there is none
	bytes   int
	hole    int64 // id of the newest loss marker
	idle    bool  // no message arrived since the last tick
}

// after returns the entries after cursor. ok is false if the tail does not reach back to cursor, so
// that messages would be missed.
func (t *tail) after(cursor int64) (entries []*dialect.Message, ok bool) {
	switch {
	case cursor >= t.last:
		return nil, true
	case cursor == t.base:
		return t.entries, true
	}
	i := sort.Search(len(t.entries), func(i int) bool { return t.entries[i].ID >= cursor })
	if i == len(t.entries) || t.entries[i].ID != cursor {
		return nil, false
	}
	return t.entries[i+1:], true
}

// extend returns t with more appended, shortened at the front to the ring's limits.
func (t *tail) extend(more []*dialect.Message) *tail {
	next := &tail{base: t.base, last: t.last, bytes: t.bytes, hole: t.hole}
	next.entries = append(t.entries, more...) // no other tail reads beyond len(t.entries)
	for _, e := range more {
		next.bytes += e.Size()
		next.last = e.ID
		if e.Event != nil {
			next.hole = e.ID
		}
	}
	drop := max(0, len(next.entries)-maxTailMessages)
	bytes := next.bytes
	for _, e := range next.entries[:drop] {
		bytes -= e.Size()
	}
	for bytes > maxTailBytes && drop < len(next.entries)-1 {
		bytes -= next.entries[drop].Size()
		drop++
	}
	if drop > 0 {
		next.base = next.entries[drop-1].ID
		next.entries, next.bytes = next.entries[drop:], bytes // append frees the dropped entries when it moves the array
	}
	return next
}

// prepend returns t with the earlier entries, which lie between base and t.base, before its own.
// ok is false if the result exceeds the ring's limits.
func (t *tail) prepend(base int64, earlier []*dialect.Message) (next *tail, ok bool) {
	next = &tail{base: base, last: t.last, bytes: t.bytes, hole: t.hole}
	for _, e := range earlier {
		next.bytes += e.Size()
	}
	next.entries = slices.Concat(earlier, t.entries)
	return next, len(next.entries) <= maxTailMessages && next.bytes <= maxTailBytes
}

// withoutMessages returns a tail at the same position without messages.
func (t *tail) withoutMessages() *tail { return &tail{base: t.last, last: t.last, hole: t.hole} }
