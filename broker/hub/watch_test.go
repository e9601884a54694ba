package hub

import (
	"errors"
	"testing"

	"switchboard/queue"
)

// watch opens a Watch of channel a.
func (s *harness) watch(t *testing.T) Watch {
	t.Helper()
	w, err := s.Watch(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// isClosed reports whether a channel is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestWatch: a Watch has the position at its begin, and learns of every later message without a
// read of the store.
func TestWatch(t *testing.T) {
	s := newHarness(t, queue.Options{})
	before := s.append("a", 2)
	w := s.watch(t)
	last := before[1].ID
	if w.Last() != last {
		t.Fatalf("Last is %d, want %d", w.Last(), last)
	}
	if !isClosed(w.Changed(before[0].ID)) {
		t.Error("another position than Last has not changed")
	}
	c, reads := s.Channel("a"), s.queue.readCount()
	for range 3 {
		changed, also := w.Changed(last), w.Changed(last)
		if isClosed(changed) {
			t.Fatal("it changed without a message")
		}
		next := s.append("a", 1)[0]
		hint(c, next)
		if !isClosed(changed) || !isClosed(also) || w.Last() != next.ID {
			t.Fatalf("after a message Last is %d, want %d", w.Last(), next.ID)
		}
		last = next.ID
	}
	if n := s.queue.readCount() - reads; n != 0 {
		t.Errorf("%d reads of the store while it waits", n)
	}
	second := s.watch(t)
	if n := s.queue.readCount() - reads; n != 0 || second.Last() != last {
		t.Errorf("a second Watch made %d reads, and Last is %d", n, second.Last())
	}
	second.Close()
	changed := w.Changed(last)
	s.append("a", 1) // without a hint
	s.MarkAllDirty()
	s.settle()
	if !isClosed(changed) {
		t.Error("a message without a hint changes nothing")
	}
	w.Close()
	s.Tick()
	s.settle()
	if s.Channel("a") != nil {
		t.Error("the channel is held after Close")
	}
}

// TestWatchOfATrimmedChannel: a position that the store no longer has is a change.
func TestWatchOfATrimmedChannel(t *testing.T) {
	s := newHarness(t, queue.Options{ChannelCap: 3})
	s.append("a", 1)
	w := s.watch(t)
	defer w.Close()
	changed := w.Changed(w.Last())
	s.append("a", 9)
	s.MarkAllDirty()
	s.settle()
	if !isClosed(changed) {
		t.Error("the position is lost, and nothing has changed")
	}
}

// TestWatchFails: a channel that cannot be bound is not held.
func TestWatchFails(t *testing.T) {
	s := newHarness(t, queue.Options{})
	down := errors.New("the store is down")
	s.queue.setError(down)
	if _, err := s.Watch(t.Context(), "a"); !errors.Is(err, down) {
		t.Fatalf("got %v", err)
	}
	s.queue.setError(nil)
	s.Tick()
	s.settle()
	if s.Channel("a") != nil {
		t.Error("the channel is held after an error")
	}
}

// TestSubscriptionCount: subscriptions to system channels do not count.
func TestSubscriptionCount(t *testing.T) {
	s := newHarness(t, queue.Options{})
	var subs []*Subscription
	for _, name := range []string{"a", "a", "b", "$all"} {
		_, sub, _ := s.subscribe(name, nil)
		subs = append(subs, sub)
	}
	if n, channels := s.SubscriptionCount(), s.ChannelCount(); n != 3 || channels != 2 {
		t.Errorf("%d subscriptions and %d channels, want 3 and 2", n, channels)
	}
	s.do(func() {
		for _, sub := range subs[1:] {
			s.Unsubscribe(sub)
		}
	})
	s.Tick()
	s.settle()
	if n, channels := s.SubscriptionCount(), s.ChannelCount(); n != 1 || channels != 1 {
		t.Errorf("at the end %d subscriptions and %d channels, want one of each", n, channels)
	}
}
