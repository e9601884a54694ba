package dialect

import (
	"sync/atomic"

	"switchboard/internal/wire"
)

// Message is something that many connections receive: a message of a channel, or an event such as a
// gap or a join. It is never changed, so all goroutines may share it.
type Message struct {
	Channel string      // "" for an event other than a gap
	ID      int64       // 0 for an event other than a gap
	Data    []byte      // compact JSON; nil for an event
	Event   *wire.Event // nil for a message of a channel
	// Prepared has the bytes that the Maker encoded. Forms with a View return a part of them.
	Prepared Prepared

	others atomic.Pointer[encoded] // the encodings of forms without a View
}

// Size returns about how many bytes the message takes in memory and on a socket.
func (m *Message) Size() int { return max(m.Prepared.Size(), len(m.Data)) }

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

// Bytes returns the bytes of m in a form. The caller must not change the bytes.
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
	e := &encoded{form: f, bytes: f.Append(nil, m), next: first}
	m.others.CompareAndSwap(first, e) // if another loop was faster, m keeps only the other's
	return e.bytes
}

// Maker makes messages and prepares their bytes for one dialect, the one that most connections
// speak. Other dialects encode a message on its first use.
type Maker interface {
	// Message makes a message of a channel. data is compact JSON; it is not kept.
	Message(channel string, id int64, data []byte) *Message
	// Event makes a message of an event.
	Event(e wire.Event) *Message
}
