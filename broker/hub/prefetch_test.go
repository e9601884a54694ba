package hub

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"switchboard/internal/wire"
	"switchboard/queue"
	"switchboard/registry"
)

// partly is a registry and a queue that fail for some channels, and count their calls.
type partialFailures struct {
	registry.Registry
	queue.Queue
	failBind, failRead string
	binds, reads       int
	afterRead          func() // runs when the channels have been read, and nobody has the answer yet
}

var errThisChannel = errors.New("not this one")

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

// TestReady binds channels that come together by one call, and what fails or is taken is not ready.
func TestReady(t *testing.T) {
	s := newHarness(t, queue.Options{})
	p := &partialFailures{Registry: s.reg, Queue: s.queue, failBind: "unbound", failRead: "unread"}
	s.opts.Registry, s.opts.Queue = p, p

	taken := s.hold("taken")
	done := taken.lockBinding()
	first := s.append("news", 3)[0].ID
	after := func(id int64) *int64 { return &id }
	wants := []PrefetchRequest{
		{"news", after(first)}, {"unbound", nil}, {"unread", after(0)}, {"taken", nil}, {"fresh", nil},
		{"news", after(first)}, // again
	}
	p.afterRead = func() { // stored behind the reading, and told before the channel is bound
		a := s.append("fresh", 1)[0]
		s.Hub.Channel("fresh").Hint(a.ID, a.Prev, []byte("0"))
	}
	ready := s.Prefetch(t.Context(), wants)
	done()
	s.Release(taken)
	p.afterRead = nil
	var got string
	for _, c := range ready {
		got += fmt.Sprint(c != nil, " ")
	}
	if got != "true false false false true false " || p.binds != 1 || p.reads != 1 {
		t.Fatalf("ready are %safter %d calls to bind and %d to read", got, p.binds, p.reads)
	}
	pos, ok := s.TryAcquire("news", after(first))
	if !ok || pos.Cursor != first || !pos.Recovered {
		t.Errorf("news: %v, %+v, want what was missed to be here", ok, pos)
	}
	s.Release(pos.Channel)
	s.settle()
	if c := ready[4]; len(c.tail.Load().entries) != 1 {
		t.Error("what was told while the channel was read is lost")
	}
	for _, c := range ready {
		if c != nil {
			s.Release(c)
		}
	}

	// What failed is nobody's, and is tried again by the next.
	p.failBind, p.failRead = "", ""
	again := s.Prefetch(t.Context(), wants[1:4])
	for i, c := range again {
		if c == nil {
			t.Fatalf("%s is still not ready", wants[1+i].Name)
		}
		s.Release(c)
	}
	s.Tick()
	s.settle()
	if n := s.ChannelCount(); n != 0 {
		t.Errorf("%d channels are held that nobody needs", n)
	}
	for _, name := range []string{"news", "unbound", "unread", "taken", "fresh", wire.AllChannel} {
		if servers, err := s.reg.ChannelServers(t.Context(), name); err != nil || len(servers) != 0 {
			t.Errorf("%s is bound to %v, %v", name, servers, err)
		}
	}
}

// TestReadyBehindTheTail: who asks for more than the tail of a bound channel has is left to Acquire.
func TestReadyBehindTheTail(t *testing.T) {
	s := newHarness(t, queue.Options{})
	list := s.append("news", 3)
	pos, err := s.Acquire(t.Context(), "news", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release(pos.Channel)
	if ready := s.Prefetch(t.Context(), []PrefetchRequest{{"news", &list[0].ID}, {"news", &list[2].ID}}); ready[0] != nil || ready[1] == nil {
		t.Errorf("got %v, want the second alone", ready)
	} else {
		s.Release(ready[1])
	}
}
