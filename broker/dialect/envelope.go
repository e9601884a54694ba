package dialect

import (
	"sync/atomic"

	"switchboard/internal/state"
)

// Envelope is what a message has besides its data and its changes of the state.
type Envelope struct {
	// By is the author in the bytes of the message, "" for none. Subscribers without the right to see
	// it receive another message. By is "" if the message has no data, or if it changes the state:
	// then parts of the changes have the author.
	By string
	// Exclude is the id of the client that does not receive the data, "" for none.
	Exclude string
	// Position means that the client Exclude receives the id, so that its position moves.
	Position bool

	plain       atomic.Pointer[Message] // the message without the author; nil until a subscriber needs it
	withoutData atomic.Pointer[Message] // what Exclude receives; nil until it is needed
}

// withoutAuthor returns the message that subscribers receive that do not see the author of m. It is
// made on first use: most often all subscribers may see the author. All connections share it.
func (m *Message) withoutAuthor(maker Maker) *Message {
	e := m.Envelope
	if plain := e.plain.Load(); plain != nil {
		return plain
	}
	return loadOrStore(&e.plain, maker.Message(m.Channel, m.ID, m.Data))
}

// loadOrStore returns the message in p, or made if p has none, and stores it.
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

// ShownExcluded is Shown for the client that m excludes: it receives only changes of the state.
func (m *Message) ShownExcluded(filter state.Filter, maker Maker) *Message {
	shown := m.dropData().Shown(filter, maker)
	if (shown == nil || shown.IsEmpty()) && m.Envelope.Position {
		return maker.Part(m.Channel, m.ID, nil, nil)
	}
	return shown
}

// dropData returns m without its data. All connections share it.
func (m *Message) dropData() *Message {
	e := m.Envelope
	if left := e.withoutData.Load(); left != nil {
		return left
	}
	left := &Message{Channel: m.Channel, ID: m.ID, Envelope: new(Envelope)}
	if c := m.Changes; c != nil {
		left.Changes = &Changes{Size: c.Size, WriteSize: c.WriteSize, Position: c.Position}
		if c.Entry != nil {
			left.Changes.Entry = c.Entry.WithoutData()
		}
	}
	return loadOrStore(&e.withoutData, left)
}
