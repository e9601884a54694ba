package delivery

import (
	"context"
	"fmt"
	"testing"

	"switchboard/broker/notes"
	"switchboard/broker/peer"
	"switchboard/internal/note"
	"switchboard/queue"
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

// TestTooManyUncertainQueues checks that all servers compare if more queues are uncertain than are
// remembered, and that the notes of these are not settled before.
func TestTooManyUncertainQueues(t *testing.T) {
	p := newMemoryPusher()
	w, missed, before := notes.NewWriter(), 0, uint64(0)
	p.opts.Notes, p.opts.Registry = w, registry.NewMemory(registry.Options{})
	p.opts.MissHints = func() {
		if missed++; w.Settled() != before {
			t.Errorf("%d are settled before the servers are notified", w.Settled()-before)
		}
	}
	store := p.opts.Queue
	for extra := range 3 {
		for n := range maxUncertain + extra {
			span := w.Open()
			w.Begin("", []note.Name{{Kind: note.Channel, Name: "a"}}).End(true)
			p.recordFailure(queueKey{peer.Client, fmt.Sprint(n)}, span, context.DeadlineExceeded)
			span.Close()
		}
		if before = w.Settled(); extra > 0 {
			p.opts.Queue = unreachable{store}
			if p.NotifyUncertain(t.Context()) == nil || missed != extra-1 {
				t.Errorf("%d calls of MissHints after a failure, want %d", missed, extra-1)
			}
			p.opts.Queue = store
		}
		if err := p.NotifyUncertain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if missed != extra {
			t.Errorf("%d calls of MissHints, want %d", missed, extra)
		}
	}
}

// unreachable is a queue that does not answer.
type unreachable struct{ Queue }

func (unreachable) Client(context.Context, string) (queue.Client, bool, error) {
	return queue.Client{}, false, context.DeadlineExceeded
}
