package session_test

import (
	"testing"

	"switchboard/broker/session"
	"switchboard/internal/allocs"
	"switchboard/queue"
)

// TestAllocs has fewer calls than messages may be on the way without being acknowledged.
func TestAllocs(t *testing.T) {
	d := newDesk(t, session.Options{})
	d.sock.blind = true
	var owed func()
	d.loop.Attach(func(run func()) { owed = run })
	data, last := []byte(`{"badge":3}`), int64(0)
	ping := []byte(`{"type":"ping","ref":7}`)
	allocs.Test(t, []allocs.Case{
		// The message, the list of frames, two tasks in one, the batch, and now and then the list of what is on the way.
		allocs.Of("a message to a client", 2, func() {
			d.Hint("phone", last+1, last, data)
			last++
			owed()
		}),
		allocs.Of("a ping and its pong", 3, func() { d.to.Receive(ping) }), // the pong, its list of frames, and its batch
	})
	if last > queue.MaxWindow {
		t.Fatal("the last messages were not written")
	}
}
