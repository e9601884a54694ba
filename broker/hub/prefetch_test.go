package hub

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"switchboard/internal/meter"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// partialFailures is a registry and a queue that fail for some channels, and count their calls.
type partialFailures struct {
	Registry
	Queue
	failBind, failRead string // the channels to fail
	binds, reads       int
	afterRead          func() // runs after the channels were read and before the caller gets the answer
}

var errThisChannel = errors.New("fails for this channel")

func (p *partialFailures) BindChannels(ctx context.Context, server string, channels []string) []error {
	p.binds++
	errs := p.Registry.BindChannels(ctx, server, channels)
	for i, c := range channels {
		if c == p.failBind {
			errs[i] = errThisChannel
		}
	}
	return errs
}

func (p *partialFailures) ReadChannels(ctx context.Context, reads []queue.ChannelRead) []queue.Outcome[queue.Page] {
	p.reads++
	out := p.Queue.ReadChannels(ctx, reads)
	for i, r := range reads {
		if r.Channel == p.failRead {
			out[i] = queue.Outcome[queue.Page]{Err: errThisChannel}
		}
	}
	if p.afterRead != nil {
		p.afterRead()
	}
	return out
}

// TestPrefetch checks that one call binds several channels, and that a channel that fails or is
// being bound elsewhere is not returned.
func TestPrefetch(t *testing.T) {
	s := newHarness(t, queue.Options{})
	p := &partialFailures{Registry: s.reg, Queue: s.queue, failBind: "unbound", failRead: "unread"}
	s.opts.Registry, s.opts.Queue = p, p

	locked := s.getOrCreate("locked")
	unlock := locked.lockBinding()
	first := s.append("news", 3)[0].ID
	at := func(id int64) *int64 { return &id }
	requests := []PrefetchRequest{
		{"news", at(first), new(meter.Meter)}, {"unbound", nil, nil}, {"unread", at(0), nil}, {"locked", nil, nil}, {"fresh", nil, nil},
		{"news", at(first), nil}, // again
	}
	p.afterRead = func() { // stored after the read, and hinted before the channel is bound
		a := s.append("fresh", 1)[0]
		s.Hub.Channel("fresh").Hint(a.ID, a.Prev, []byte("0"))
	}
	ready := s.Prefetch(t.Context(), requests)
	unlock()
	s.Release(locked)
	p.afterRead = nil
	var got string
	for _, c := range ready {
		got += fmt.Sprint(c != nil, " ")
	}
	if got != "true false false false true false " || p.binds != 1 || p.reads != 1 {
		t.Fatalf("ready: %safter %d calls to bind and %d to read", got, p.binds, p.reads)
	}
	pos, ok := s.TryAcquire("news", at(first))
	if !ok || pos.Cursor != first || !pos.Recovered {
		t.Errorf("news: %v, %+v, want the missed messages in the tail", ok, pos)
	}
	s.Release(pos.Channel)
	s.settle()
	if c := ready[4]; len(c.tail.Load().messages) != 1 {
		t.Error("the message that was hinted during the read is lost")
	}
	for _, c := range ready {
		if c != nil {
			s.Release(c)
		}
	}

	// A channel that failed is not bound, and the next call tries again.
	p.failBind, p.failRead = "", ""
	again := s.Prefetch(t.Context(), requests[1:4])
	for i, c := range again {
		if c == nil {
			t.Fatalf("%s is still not ready", requests[1+i].Name)
		}
		s.Release(c)
	}
	s.Tick()
	s.settle()
	if n := s.ChannelCount(); n != 0 {
		t.Errorf("%d unused channels are held", n)
	}
	for _, name := range []string{"news", "unbound", "unread", "locked", "fresh", wire.AllChannel} {
		if servers, err := s.reg.ChannelServers(t.Context(), name); err != nil || len(servers) != 0 {
			t.Errorf("%s is bound to %v, %v", name, servers, err)
		}
	}
}

// TestPrefetchBeforeTheTail checks that a position before the tail of a bound channel is left to
// Acquire.
func TestPrefetchBeforeTheTail(t *testing.T) {
	s := newHarness(t, queue.Options{})
	list := s.append("news", 3)
	pos, err := s.Acquire(t.Context(), "news", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release(pos.Channel)
	if ready := s.Prefetch(t.Context(), []PrefetchRequest{{Name: "news", After: &list[0].ID}, {Name: "news", After: &list[2].ID}}); ready[0] != nil || ready[1] == nil {
		t.Errorf("got %v, want the second alone", ready)
	} else {
		s.Release(ready[1])
	}
}
