package session_test

import (
	"testing"

	"switchboard/broker/session"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// TestAckOfAnotherClient checks that an ack for another client's queue is ignored and causes no
// error; see wire.Request.AckOf.
func TestAckOfAnotherClient(t *testing.T) {
	h := newHarness(t, session.Options{})
	h.settle()
	h.received()
	for of, want := range map[string]string{"another": "", "phone": "", "": "error:bad_request"} {
		h.onLoop(func() { h.receiver.Receive(wire.Request{Type: wire.TypeAck, ID: 1 << 52, AckOf: of}, 10) })
		h.settle()
		if got := types(h.received()); got != want {
			t.Errorf("an ack of %q, with an id that is not assigned, is answered with %q, want %q", of, got, want)
		}
	}
}

// TestResumeAfterLoss: the client's position is above all ids of the queue, because the store has
// lost the last messages. The client has those before them, and does not receive them again.
func TestResumeAfterLoss(t *testing.T) {
	h := newHarness(t, session.Options{})
	push := func() (id int64) {
		a, err := h.queue.AppendClient(t.Context(), queue.ClientPush{Client: "roamer", Data: []byte("1")})
		if err != nil {
			t.Fatal(err)
		}
		return a.ID
	}
	push()
	position := push() + 1000
	d := &device{h: h, client: "roamer", sock: newSocket()}
	resume := []wire.Request{
		{Type: wire.TypeConnect, Client: "roamer", Secret: "the secret of roamer"},
		{Type: wire.TypeAck, ID: position, AckOf: "roamer"},
	}
	h.onLoop(func() { d.receiver = h.Accept(h.loop, d.sock, resume) })
	h.settle()
	if got := types(d.received()); got != "connected" {
		t.Errorf("received %s, want nothing again", got)
	}
	d.end()
	next := push()
	d = &device{h: h, client: "roamer", sock: newSocket()}
	h.onLoop(func() { d.receiver = h.Accept(h.loop, d.sock, resume[:1]) })
	h.settle()
	if events := d.received(); types(events) != "connected message" || *events[1].ID != next {
		t.Errorf("received %+v, want message %d", events, next)
	}
}
