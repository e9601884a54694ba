package dialect

import (
	"sync/atomic"

	"switchboard/internal/wire"
)

// Message is something that many connections receive: a message of a channel, or an event such as a
// gap or a join. It is never changed, so all goroutines may share it.
type Message struct {
	Channel string // "" for an event that has no place in a channel's queue, such as a join
	ID      int64  // 0 for such an event
	// Data is compact JSON. It is nil for an event, and for a message that only changes the state of
	// its channel.
	Data []byte
	// Event is nil for a message of a channel.
	Event *wire.Event
	// State has what a part shows besides Data, see [Message.Shown]. It is nil for all other messages.
	State *wire.StateEvent
	// Prepared has the bytes that the Maker encoded. Forms with a View return a part of them.
	Prepared Prepared
	// Changes is nil if the message does not change the state of its channel. Connections that see
	// the state receive a part of Changes instead of m, see [Message.Shown].
	Changes *Changes
	// Envelope is nil if the message has nothing besides Data and Changes.
	Envelope *Envelope

	others atomic.Pointer[encoded] // the encodings of forms without a View
}

// Size returns about how many bytes the message takes in memory.
func (m *Message) Size() int {
	size := max(m.Prepared.Size(), len(m.Data))
	if m.Envelope != nil && m.Envelope.By != "" {
		size *= 2 // there may be the bytes without the author too
	}
	if m.Changes != nil {
		size = max(size, m.Changes.Size)
	}
	return size
}

// WriteSize returns about how many bytes the message, or a part of its changes, takes on a socket.
func (m *Message) WriteSize() int {
	size := max(m.Prepared.Size(), len(m.Data))
	if m.Changes != nil {
		size = max(size, m.Changes.WriteSize)
	}
	return size
}

// IsEmpty reports whether m has no bytes in any dialect: at most, it changes the state. A
// connection that does not see the state gets it like any other message, so that its position moves
// past it.
func (m *Message) IsEmpty() bool { return m.Data == nil && (m.Changes != nil || m.Envelope != nil) }

// Differs reports whether not all connections receive m itself, see [Message.Shown].
func (m *Message) Differs() bool { return m.Changes != nil || m.Envelope != nil }

// Form is how the connections of a dialect with the same framing receive a message.
type Form struct {
	// View returns the bytes of m, which Maker has prepared. Nil means that Append encodes m, once
	// for all connections.
	View func(m *Message) []byte
	// Append appends m as the socket gets it.
	Append func(dst []byte, m *Message) []byte
}

// encoded is a message in one form, and an element of a linked list.
type encoded struct {
	form  *Form
	bytes []byte
	next  *encoded
}

// Bytes returns the bytes of m in a form, none if m is empty. The caller must not change the bytes.
func (m *Message) Bytes(f *Form) []byte {
	if m.IsEmpty() {
		return nil
	}
	if f.View != nil {
		return f.View(m)
	}
	first := m.others.Load()
	for e := first; e != nil; e = e.next {
		if e.form == f {
			return e.bytes
		}
	}
	e := &encoded{form: f, bytes: f.Append(nil, m), next: first}
	m.others.CompareAndSwap(first, e) // if another loop was faster, m keeps only the other's
	return e.bytes
}

// Maker makes messages and prepares their bytes for one dialect, the one that most connections
// speak. Other dialects encode a message on its first use.
type Maker interface {
	// Message makes a message of a channel. data is compact JSON; it is not kept.
	Message(channel string, id int64, data []byte) *Message
	// Authored makes a message of a channel with an author, which is in its bytes and in
	// Envelope.By. data is compact JSON; it is not kept.
	Authored(channel string, id int64, data []byte, by string) *Message
	// Part makes what some connections receive of a message. data is that of the message, or nil, and
	// shown the State, or nil for a part that only has the id. Both are kept.
	Part(channel string, id int64, data []byte, shown *wire.StateEvent) *Message
	// Event makes a message of an event. The event may be a page of a state: then it has a StateEvent.
	Event(e wire.Event) *Message
}
