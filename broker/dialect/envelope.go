package dialect

import (
	"sync/atomic"

	"switchboard/internal/state"
)

// Envelope is what a message has besides its data and its changes of the state. CONTRIBUTING.md
// lists the other places that know a member of a message.
type Envelope struct {
	// By is the author that the bytes of the message name, "" for none. Subscribers that may not see
	// the author receive other bytes, see withoutAuthor. By is also "" for a message without data, and
	// for one that changes the state: there Changes.Entry has the author.
	By string
	// Exclude is the id of the client that does not receive the data, "" for none.
	Exclude string
	// SendID makes the client Exclude receive the id of the message, even if it sees nothing else of
	// it. The client resumes after the last id that it has received.
	SendID bool

	withoutAuthor atomic.Pointer[Message] // nil until Message.withoutAuthor makes it
	withoutData   atomic.Pointer[Message] // nil until Message.withoutData makes it
}

// withoutAuthor returns m for the subscribers that may not see its author. It is made on first use,
// because most often all subscribers may see the author. All connections share it.
func (m *Message) withoutAuthor(maker Maker) *Message {
	e := m.Envelope
	if made := e.withoutAuthor.Load(); made != nil {
		return made
	}
	return loadOrStore(&e.withoutAuthor, maker.Message(m.Channel, m.ID, m.Data))
}

// loadOrStore returns the message in p. If p has none, loadOrStore stores made in p and returns it.
func loadOrStore(p *atomic.Pointer[Message], made *Message) *Message {
	if p.CompareAndSwap(nil, made) {
		return made
	}
	return p.Load()
}

// Excludes reports whether a client does not receive the data of m.
func (m *Message) Excludes(client string) bool {
	return m.Envelope != nil && m.Envelope.Exclude != "" && m.Envelope.Exclude == client
}

// ShownExcluded is Shown for the client Envelope.Exclude: it receives only changes of the state,
// and with Envelope.SendID at least the id.
func (m *Message) ShownExcluded(filter state.Filter, maker Maker) *Message {
	shown := m.withoutData().Shown(filter, maker)
	if (shown == nil || shown.IsEmpty()) && m.Envelope.SendID {
		return maker.Part(m.Channel, m.ID, nil, nil)
	}
	return shown
}

// withoutData returns m without its data. It is made on first use, and all connections share it.
func (m *Message) withoutData() *Message {
	e := m.Envelope
	if made := e.withoutData.Load(); made != nil {
		return made
	}
	made := &Message{Channel: m.Channel, ID: m.ID, Envelope: new(Envelope)}
	if c := m.Changes; c != nil {
		made.Changes = &Changes{Size: c.Size, WriteSize: c.WriteSize, SendID: c.SendID}
		if c.Entry != nil {
			made.Changes.Entry = c.Entry.WithoutData()
		}
	}
	return loadOrStore(&e.withoutData, made)
}
