package session_test

import (
	"testing"

	"switchboard/broker/session"
	"switchboard/internal/wire"
)

// TestAckOfAnotherClient checks that an ack for another client's queue is ignored and causes no
// error; see wire.Request.Of.
func TestAckOfAnotherClient(t *testing.T) {
	h := newHarness(t, session.Options{})
	h.settle()
	h.received()
	for of, want := range map[string]string{"another": "", "phone": "error:bad_request", "": "error:bad_request"} {
		h.onLoop(func() { h.receiver.Receive(wire.Request{Type: wire.TypeAck, ID: 1 << 52, AckOf: of}, 10) })
		h.settle()
		if got := types(h.received()); got != want {
			t.Errorf("an ack of %q, with an id that is not assigned, is answered with %q, want %q", of, got, want)
		}
	}
}
