package delivery

import (
	"context"
	"testing"

	"switchboard/broker/notes"
	"switchboard/broker/peer"
	"switchboard/internal/note"
	"switchboard/registry"
)

// TestUncertainIsNotSettled checks that the note of a write whose outcome is unknown is not settled
// before the owners of the queue are notified.
func TestUncertainIsNotSettled(t *testing.T) {
	p := newMemoryPusher()
	w := notes.NewWriter()
	p.opts.Notes, p.opts.Registry = w, registry.NewMemory(registry.Options{})
	for range 2 { // the second failure of a queue keeps the first span
		span := w.Open()
		w.Begin("", []note.Name{{Kind: note.Channel, Name: "a"}}).End(true)
		p.recordFailure(queueKey{peer.Channel, "a"}, span, context.DeadlineExceeded)
		span.Close()
	}
	if n := w.Settled(); n != 0 {
		t.Errorf("%d is settled before the owners are notified", n)
	}
	if err := p.NotifyUncertain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := w.Settled(); n != 2 {
		t.Errorf("%d is settled, want 2", n)
	}
	if _, err := p.ToChannel(t.Context(), "a", Payload{Data: []byte("1")}); err != nil || w.Settled() != 2 {
		t.Errorf("%d is settled after a push, %v", w.Settled(), err)
	}
}
