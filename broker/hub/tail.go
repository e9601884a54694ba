package hub

import (
	"cmp"
	"slices"

	"switchboard/broker/dialect"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// Limits of the tail. The tail serves subscribers that keep up or were slow only for a moment.
// Older messages come from the store.
const (
	maxTailMessages = 256
	maxTailBytes    = 256 << 10
)

// message encodes an item of the channel's queue: the payload of a message, an entry, or a loss
// marker, which becomes a gap event.
func (c *Channel) message(id int64, data []byte) *dialect.Message {
	if after, to, lost := queue.Loss(data); lost {
		return c.gap(id, after, to)
	}
	if state.IsEntry(data) {
		return c.entry(id, data)
	}
	return c.hub.opts.Messages.Message(c.Name, id, data)
}

// hinted is message for an item of which decoded may be known, see HintMessage.
func (c *Channel) hinted(id int64, data []byte, decoded state.Message) *dialect.Message {
	if decoded.Data != nil {
		return c.enveloped(id, decoded)
	}
	return c.message(id, data)
}

// gap encodes the loss marker id as a gap event. It is a function of its own because its arguments
// escape to the heap.
func (c *Channel) gap(id, after, to int64) *dialect.Message {
	m := c.hub.opts.Messages.Event(wire.Event{Type: wire.TypeGap, Channel: c.Name, After: &after, ID: &to})
	m.ID = id
	return m
}

// isMarker reports whether an item of the channel's queue is a loss marker.
func isMarker(m *dialect.Message) bool { return m.Event != nil }

// tail is an unbroken sequence of a channel's newest messages. It is immutable. A new message makes
// a new tail, which may share the array of the old one.
type tail struct {
	base       int64 // the id before the first message
	messages   []*dialect.Message
	last       int64 // the id of the last message, or base when there is none
	lastMarker int64 // id of the channel's newest loss marker
	bytes      int32 // of the messages
	kinds      kinds // of the messages, and perhaps of earlier ones
	idle       bool  // no message arrived since the last tick
}

// kinds is a set of kinds of messages that not all subscribers receive as they are. It is empty if
// no message differs between subscribers, see dialect.Message.Differs.
type kinds uint8

const (
	changing  kinds = 1 << iota // with changes of the state
	enveloped                   // with an Envelope
	authored                    // with an author in the bytes
	excluding                   // not for one of the clients
)

// kindsOf returns the kinds of a message.
func kindsOf(m *dialect.Message) (k kinds) {
	if m.Changes != nil {
		k |= changing
	}
	if e := m.Envelope; e != nil {
		k |= enveloped
		if e.By != "" {
			k |= authored
		}
		if e.Exclude != "" {
			k |= excluding
		}
	}
	return k
}

// hiddenBy returns the kinds of messages that subscribers with the filter at an index do not
// receive as they are, besides those that exclude them.
func hiddenBy(filter uint8) kinds {
	switch filter {
	case dataOnly:
		return authored
	case withAuthor:
		return changing
	}
	return changing | enveloped
}

// after returns the messages after cursor. ok is false if the tail does not reach back to cursor,
// so that messages would be missed.
func (t *tail) after(cursor int64) (messages []*dialect.Message, ok bool) {
	switch {
	case cursor >= t.last:
		return nil, true
	case cursor == t.base:
		return t.messages, true
	}
	i, found := search(t.messages, cursor)
	if !found {
		return nil, false
	}
	return t.messages[i+1:], true
}

// search returns the index of the message with an id.
func search(messages []*dialect.Message, id int64) (i int, found bool) {
	return slices.BinarySearchFunc(messages, id, func(m *dialect.Message, id int64) int { return cmp.Compare(m.ID, id) })
}

// extend returns t with more appended, shortened at the front to the tail's limits.
func (t *tail) extend(more []*dialect.Message) *tail {
	next := &tail{base: t.base, last: t.last, bytes: t.bytes, lastMarker: t.lastMarker, kinds: t.kinds}
	next.messages = append(t.messages, more...) // no other tail reads beyond len(t.messages)
	erases := false
	for _, m := range more {
		next.bytes += int32(m.Size())
		next.last = m.ID
		next.kinds |= kindsOf(m)
		if isMarker(m) {
			next.lastMarker = m.ID
		}
		erases = erases || erasedBy(m) != 0
	}
	if erases {
		next.erase(more)
	}
	drop := max(0, len(next.messages)-maxTailMessages)
	bytes := next.bytes
	for _, m := range next.messages[:drop] {
		bytes -= int32(m.Size())
	}
	for bytes > maxTailBytes && drop < len(next.messages)-1 {
		bytes -= int32(next.messages[drop].Size())
		drop++
	}
	if drop > 0 {
		next.base = next.messages[drop-1].ID
		next.messages, next.bytes = next.messages[drop:], bytes // append frees the dropped messages when it moves the array
	}
	return next
}

// prepend returns t with the earlier messages added to the front. base is the id before the first
// of them, and the last of them has the id t.base. ok is false if the result exceeds the tail's
// limits.
func (t *tail) prepend(base int64, earlier []*dialect.Message) (next *tail, ok bool) {
	next = &tail{base: base, last: t.last, bytes: t.bytes, lastMarker: t.lastMarker, kinds: t.kinds}
	for _, m := range earlier {
		next.bytes += int32(m.Size())
		next.kinds |= kindsOf(m)
	}
	next.messages = slices.Concat(earlier, t.messages)
	next.erase(t.messages) // the page may have been read before an erasure
	return next, len(next.messages) <= maxTailMessages && next.bytes <= maxTailBytes
}

// withoutMessages returns a tail at the same position without messages.
func (t *tail) withoutMessages() *tail {
	return &tail{base: t.last, last: t.last, lastMarker: t.lastMarker}
}
