package hub

import (
	"errors"
	"testing"

	"switchboard/internal/await"
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

// awaitClosed waits until a channel is closed.
func awaitClosed(t *testing.T, c <-chan struct{}) {
	t.Helper()
	await.True(t, "the position changes", func() bool { return isClosed(c) })
}

// TestWatch: a Watch has the position at its begin, and learns of every later message. The registry
// does not know it.
func TestWatch(t *testing.T) {
	s := newHarness(t, queue.Options{})
	before := s.append("a", 2)
	w, also := s.watch(t), s.watch(t)
	last := before[1].ID
	if w.Last() != last || also.Last() != last || s.WatchCount("a") != 2 {
		t.Fatalf("Last is %d and %d, want %d, in %d Watches", w.Last(), also.Last(), last, s.WatchCount("a"))
	}
	if !isClosed(w.Changed(before[0].ID)) {
		t.Error("another position than Last has not changed")
	}
	for _, how := range []string{"stored here", "read from the store"} {
		changed, second := w.Changed(last), also.Changed(last)
		if isClosed(changed) {
			t.Fatal("it changed without a message")
		}
		last = s.append("a", 1)[0].ID
		if how == "stored here" {
			s.Appended("a", last)
			if !isClosed(changed) {
				t.Error("a message that was stored here changes nothing")
			}
		}
		awaitClosed(t, changed)
		awaitClosed(t, second)
		if w.Last() != last || also.Last() != last {
			t.Errorf("%s: Last is %d and %d, want %d", how, w.Last(), also.Last(), last)
		}
		s.Appended("a", last-1) // late
		if w.Last() != last {
			t.Errorf("after a late message Last is %d, want %d", w.Last(), last)
		}
	}
	servers, err := s.reg.ChannelServers(t.Context(), "a")
	names, _, err2 := s.reg.Channels(t.Context(), "", "", 10)
	if len(servers)+len(names)+s.ChannelCount() != 0 || err != nil || err2 != nil {
		t.Errorf("a watched channel has the servers %v and is in the list %v: %v, %v", servers, names, err, err2)
	}
	w.Close()
	also.Close()
	if s.WatchCount("a") != 0 || s.watches.count.Load() != 0 {
		t.Error("the channel is watched after Close")
	}
}

// TestWatchWithSubscribers: while a channel has subscribers here, a Watch follows their hints, and
// does not read the store.
func TestWatchWithSubscribers(t *testing.T) {
	s := newHarness(t, queue.Options{})
	last := s.append("a", 1)[0].ID
	early := s.watch(t)
	defer early.Close()
	_, sub, _ := s.subscribe("a", nil)
	c, reads := s.Channel("a"), s.queue.readCount()
	w := s.watch(t)
	defer w.Close()
	for range 3 {
		changed, also := w.Changed(last), early.Changed(last)
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
	if n := s.queue.readCount() - reads; n > 1 { // one may have been under way
		t.Errorf("%d reads of the store", n)
	}
	changed := w.Changed(last)
	last = s.append("a", 1)[0].ID // without a hint
	s.compare()
	awaitClosed(t, changed)
	s.do(func() { s.Unsubscribe(sub) })
	s.Tick()
	s.settle()
	if s.Channel("a") != nil {
		t.Error("a Watch holds the channel")
	}
	changed = w.Changed(last)
	s.append("a", 1)
	awaitClosed(t, changed)
}

// TestWatchOfALostPosition: a position that the store no longer has is a change.
func TestWatchOfALostPosition(t *testing.T) {
	s := newHarness(t, queue.Options{})
	for _, subscribed := range []bool{false, true} {
		last := s.append("a", 1)[0].ID
		if subscribed {
			s.subscribe("a", nil)
		}
		w := s.watch(t)
		changed := w.Changed(last)
		s.queue.lose()
		s.compare()
		awaitClosed(t, changed)
		if w.Last() >= last {
			t.Errorf("subscribed: %v: Last is %d, want less than %d", subscribed, w.Last(), last)
		}
		w.Close()
	}
}

// TestWatchFails: a channel that cannot be read is not watched.
func TestWatchFails(t *testing.T) {
	s := newHarness(t, queue.Options{})
	down := errors.New("the store is down")
	s.queue.setError(down)
	if _, err := s.Watch(t.Context(), "a"); !errors.Is(err, down) {
		t.Fatalf("got %v", err)
	}
	if s.WatchCount("a") != 0 {
		t.Error("the channel is watched after an error")
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
