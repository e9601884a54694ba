package session_test

import (
	"testing"

	"switchboard/broker/session"
	"switchboard/internal/wire"
)

// subscribes are the forms of a subscribe, with and without a call of the store.
var subscribes = []string{
	`{"type":"subscribe","channel":"news","ref":1}`,
	`{"type":"subscribe","channel":"news","ref":1,"after":0}`,
	`{"type":"subscribe","channel":"news","ref":1,"state":true}`,
	`{"type":"subscribe","channel":"news","ref":1,"presence":true}`,
}

// TestSubscriberIsCountedBeforeItsAnswer checks that a client that has the answer finds itself in
// the counts.
func TestSubscriberIsCountedBeforeItsAnswer(t *testing.T) {
	for _, subscribe := range subscribes {
		h := newHarness(t, session.Options{})
		counted := -1
		h.onLoop(func() {
			h.sock.sending = func(e wire.Event) {
				if e.Type == wire.TypeSubscribed {
					counted = h.hub.SubscriberCount("news")
				}
			}
		})
		h.send("%s", subscribe)
		if counted != 1 {
			t.Errorf("%s: %d subscribers at the answer", subscribe, counted)
		}
	}
}

// TestSubscribeToAClosedSocket checks that nothing is left of a subscription whose answer finds the
// connection closed.
func TestSubscribeToAClosedSocket(t *testing.T) {
	for _, subscribe := range subscribes {
		h := newHarness(t, session.Options{})
		h.onLoop(func() { h.sock.sending = func(wire.Event) { h.receiver.Closed() } })
		h.send("%s", subscribe)
		if n := h.hub.SubscriberCount("news"); n != 0 {
			t.Errorf("%s: %d subscribers", subscribe, n)
		}
		h.hub.Tick()
		h.settle()
		if h.hub.Channel("news") != nil {
			t.Errorf("%s: the channel is still bound", subscribe)
		}
	}
}
