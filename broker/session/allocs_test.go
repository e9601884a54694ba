package session_test

import (
	"testing"

	"switchboard/broker/session"
	"switchboard/internal/allocs"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// TestAllocs has fewer calls than messages may be on the way without being acknowledged.
func TestAllocs(t *testing.T) {
	speakJSON(t)
	d := newDesk(t, session.Options{})
	d.sock.blind = true
	var owed func()
	d.loop.Attach(func(run func()) { owed = run })
	ping := wire.Request{Type: wire.TypePing, Ref: wire.RefOf(7)}
	data, last := []byte(`{"badge":3}`), int64(0)
	allocs.Test(t, []allocs.Case{
		// The hint, the message that it carries, and now and then the list of messages on the way.
		allocs.Of("a message to a client", 2, func() {
			d.Hint("phone", last+1, last, data)
			last++
			owed()
		}),
		allocs.Of("a ping and its pong", 0, func() { d.to.Receive(ping, 23) }),
	})
	if last > queue.MaxWindow {
		t.Fatal("the last messages were not written")
	}
}
