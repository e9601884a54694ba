package dialect

import (
	"sync/atomic"

	"switchboard/internal/wire"
)

// Message is something that many connections receive: a message of a channel, or an event such as a
// gap or a join. It is never changed, so all goroutines may share it.
type Message struct {
	Channel string // of a message
	ID      int64  // of a message, or of the gap that stands in a channel for lost ones; 0 for other events
	Data    []byte // of a message: compact JSON
	Event   *wire.Event
	// Packed is the encoding that the message was made with. Forms with a View are views of it.
	Packed Packed

	others atomic.Pointer[encoding]
}

// Size is about how many bytes the message takes in memory and on a socket.
func (m *Message) Size() int { return max(m.Packed.Size(), len(m.Data)) }

// Form is how the connections of a dialect take messages in one framing.
type Form struct {
	// View returns the bytes of m in this form, if m was made with them. Nil means that Append
	// encodes them, once for each message.
	View func(m *Message) []byte
	// Append appends m as it goes on the socket.
	Append func(dst []byte, m *Message) []byte
}

// encoding is a message in another form than it was made with.
type encoding struct {
	form  *Form
	bytes []byte
	next  *encoding
}

// Bytes returns m in a form. They must not be changed.
func (m *Message) Bytes(f *Form) []byte {
	if f.View != nil {
		return f.View(m)
	}
	first := m.others.Load()
	for e := first; e != nil; e = e.next {
		if e.form == f {
			return e.bytes
		}
	}
	e := &encoding{form: f, bytes: f.Append(nil, m), next: first}
	m.others.CompareAndSwap(first, e) // another loop may have encoded it as well: then one of them is kept
	return e.bytes
}

// Maker makes messages with the encoding of one dialect in them, which so costs other dialects'
// connections something and its own nothing. It is the dialect that most connections speak.
type Maker interface {
	// Message makes a message of a channel. data is compact JSON; it is not kept.
	Message(channel string, id int64, data []byte) *Message
	// Event makes a message of an event.
	Event(e wire.Event) *Message
}

// Batch is a run of messages that goes out in one write call. The bytes of each form are joined once
// and shared by all connections of one event loop; a Batch belongs to one goroutine.
type Batch struct {
	Messages []*Message
	joined   []joined
}

type joined struct {
	form  *Form
	bytes []byte
}

// Bytes returns all messages in a form. They must not be changed.
func (b *Batch) Bytes(f *Form) []byte {
	if len(b.Messages) == 1 {
		return b.Messages[0].Bytes(f)
	}
	for i := range b.joined {
		if b.joined[i].form == f {
			return b.joined[i].bytes
		}
	}
	size := 0
	for _, m := range b.Messages {
		size += len(m.Bytes(f))
	}
	all := make([]byte, 0, size)
	for _, m := range b.Messages {
		all = append(all, m.Bytes(f)...)
	}
	b.joined = append(b.joined, joined{f, all})
	return all
}

// Reset makes b a batch of other messages. It keeps no reference to those before.
func (b *Batch) Reset(messages []*Message) {
	clear(b.joined)
	b.Messages, b.joined = messages, b.joined[:0]
}
