package dialect

import (
	"sync/atomic"

	"switchboard/internal/wire"
)

// Envelope is what a message has besides its data and its changes of the state.
type Envelope struct {
	// By is the author that subscribers with the right to see it receive, "" for none.
	By string

	authored atomic.Pointer[Message] // the message with By; nil until a subscriber needs it
}

// aroundBy is about how many bytes a message takes for By, besides By itself.
const aroundBy = len(`,"by":""`)

// withAuthor returns the message that subscribers receive that see the author. All connections
// share it.
func (m *Message) withAuthor(maker Maker) *Message {
	e := m.Envelope
	if shown := e.authored.Load(); shown != nil {
		return shown
	}
	made := maker.Part(m.Channel, m.ID, m.Data, &wire.StateEvent{By: e.By})
	if e.authored.CompareAndSwap(nil, made) {
		return made
	}
	return e.authored.Load()
}
