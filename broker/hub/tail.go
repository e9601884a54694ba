package hub

import (
	"slices"
	"sort"

	"switchboard/internal/wire"
	"switchboard/queue"
)

// The tail is a short ring: what a subscriber that keeps up needs, and a little more
// for those who were briefly behind. Older messages come from the store.
const (
	maxTailMessages = 256
	maxTailBytes    = 256 << 10
)

// entry is one message of a channel, encoded; or the gap that stands there for lost ones.
type entry struct {
	id    int64
	frame wire.Frame
	hole  bool
}

func newEntry(channel string, id int64, data []byte) entry {
	_, _, hole := queue.Loss(data)
	return entry{id, Encode(channel, id, data), hole}
}

// Encode is what a client is sent for an entry of a queue: the message, or the gap that a marker
// tells of.
func Encode(channel string, id int64, data []byte) wire.Frame {
	if after, to, lost := queue.Loss(data); lost {
		return encodeGap(channel, after, to)
	}
	return wire.EncodeMessage(channel, id, data)
}

// encodeGap is by itself because the numbers it points to are allocated.
func encodeGap(channel string, after, to int64) wire.Frame {
	return wire.Event{Type: wire.TypeGap, Channel: channel, After: &after, ID: &to}.Encode()
}

// tail is an unbroken run of a channel's newest messages. It is never changed: a new
// message makes a new tail, which may share the array of the old one behind its end.
type tail struct {
	base    int64 // the id before the first entry
	entries []entry
	last    int64 // the id of the last entry, or base when there is none
	bytes   int
	hole    int64 // id of the last marker of a loss that is known
	idle    bool  // nothing came since the last tick
}

// after are the entries behind cursor; ok is false when the run does not reach back
// to it, so that something between would be missed.
func (t *tail) after(cursor int64) (entries []entry, ok bool) {
	switch {
	case cursor >= t.last:
		return nil, true
	case cursor == t.base:
		return t.entries, true
	}
	i := sort.Search(len(t.entries), func(i int) bool { return t.entries[i].id >= cursor })
	if i == len(t.entries) || t.entries[i].id != cursor {
		return nil, false
	}
	return t.entries[i+1:], true
}

// extend is t with more behind it, cut at the front to the ring's size.
func (t *tail) extend(more []entry) *tail {
	next := &tail{base: t.base, last: t.last, bytes: t.bytes, hole: t.hole}
	next.entries = append(t.entries, more...) // beyond len(t.entries) nobody reads
	for _, e := range more {
		next.bytes += e.frame.Size()
		next.last = e.id
		if e.hole {
			next.hole = e.id
		}
	}
	drop := max(0, len(next.entries)-maxTailMessages)
	bytes := next.bytes
	for _, e := range next.entries[:drop] {
		bytes -= e.frame.Size()
	}
	for bytes > maxTailBytes && drop < len(next.entries)-1 {
		bytes -= next.entries[drop].frame.Size()
		drop++
	}
	if drop > 0 {
		next.base = next.entries[drop-1].id
		next.entries, next.bytes = next.entries[drop:], bytes // append lets the dropped ones go when it moves
	}
	return next
}

// preceded is t with those in front of it that lie between base and its own base; ok is false when they do not fit.
func (t *tail) prepend(base int64, earlier []entry) (next *tail, ok bool) {
	next = &tail{base: base, last: t.last, bytes: t.bytes, hole: t.hole}
	for _, e := range earlier {
		next.bytes += e.frame.Size()
	}
	next.entries = slices.Concat(earlier, t.entries)
	return next, len(next.entries) <= maxTailMessages && next.bytes <= maxTailBytes
}

// emptied is the position of t without its messages.
func (t *tail) withoutMessages() *tail { return &tail{base: t.last, last: t.last, hole: t.hole} }
