package session_test

import (
	"testing"

	"switchboard/broker/session"
	"switchboard/internal/allocs"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// TestAllocs counts the allocations of a delivery and of a ping. It makes fewer deliveries than
// queue.MaxWindow: the client acknowledges none of them.
func TestAllocs(t *testing.T) {
	speakJSON(t)
	h := newHarness(t, session.Options{})
	h.sock.discard = true
	var runLoop func()
	h.loop.Attach(func(run func()) { runLoop = run })
	data, last := []byte(`{"badge":3}`), int64(0)
	ping := wire.Request{Type: wire.TypePing, Ref: wire.RefOf(7)}
	allocs.Test(t, []allocs.Case{
		// The hint, the message that it carries, and sometimes the list of unacknowledged ids.
		allocs.Of("a message to a client", 2, func() {
			h.Hint("phone", last+1, last, data)
			last++
			runLoop()
		}),
		allocs.Of("a ping and its pong", 0, func() { h.receiver.Receive(ping, 23) }),
	})
	if last > queue.MaxWindow {
		t.Fatal("the last messages were not written")
	}
}
