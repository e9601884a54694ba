package hub

import (
	"bytes"
	"testing"

	"switchboard/internal/meter"
	"switchboard/queue"
)

// appendLarge stores n messages of 8 KiB without a hint, and returns the last id before them.
func (s *harness) appendLarge(channel string, n int) (before int64) {
	s.t.Helper()
	for i := range n {
		a, err := s.queue.AppendChannel(s.t.Context(), queue.ChannelPush{Channel: channel, Data: bytes.Repeat([]byte("7"), 8<<10)})
		if err != nil {
			s.t.Fatal(err)
		}
		if i == 0 {
			before = a.Prev
		}
	}
	return before
}

// TestCatchUpIsCharged checks that a subscriber is charged once for what the store was read for it.
func TestCatchUpIsCharged(t *testing.T) {
	s := newHarness(t, queue.Options{})
	const n = 100
	before := s.appendLarge("a", n)
	other, _, _ := s.subscribe("a", nil) // binds the channel
	r, _, _ := s.subscribe("a", &before)
	s.do(func() {
		if len(r.ids) != n || r.written != n*8<<10 || r.unused != 0 {
			t.Errorf("%d messages were written; charged for %d bytes and for %d in vain", len(r.ids), r.written, r.unused)
		}
		if other.written+other.unused != 0 {
			t.Error("a subscriber that read nothing was charged")
		}
	})
}

// TestUnsubscribedPageIsCharged checks that a page for a subscription that has ended was read in
// vain, and that it is small.
func TestUnsubscribedPageIsCharged(t *testing.T) {
	s := newHarness(t, queue.Options{})
	before := s.appendLarge("a", 100)
	s.subscribe("a", nil)
	m := new(meter.Meter)
	pos, err := s.Acquire(meter.With(t.Context(), m), "a", &before)
	if err != nil {
		t.Fatal(err)
	}
	if n := m.Bytes(); n != 0 { // the messages would not reach the tail
		t.Errorf("the position has cost %d bytes", n)
	}
	r, sub := &recorder{}, new(Subscription)
	s.do(func() {
		s.Subscribe(sub, s.loop, r, pos)
		sub.Start()
		s.Unsubscribe(sub)
	})
	s.settle()
	s.do(func() {
		if r.written != 0 || r.unused == 0 || r.unused > smallPage {
			t.Errorf("charged for %d bytes, and for %d in vain", r.written, r.unused)
		}
	})
}

// TestSlowSubscriberReadsSmallPages checks that a socket that takes little makes the store read
// little in vain.
func TestSlowSubscriberReadsSmallPages(t *testing.T) {
	s := newHarness(t, queue.Options{})
	const n = 400
	before := s.appendLarge("a", n)
	s.subscribe("a", nil)
	r, sub, _ := s.subscribe("b", nil)
	s.do(func() { s.Unsubscribe(sub) })
	pos, err := s.Acquire(t.Context(), "a", &before)
	if err != nil {
		t.Fatal(err)
	}
	*sub = Subscription{}
	r.full = true
	s.do(func() {
		s.Subscribe(sub, s.loop, r, pos)
		sub.Start()
	})
	for range n {
		s.settle()
		s.do(func() {
			r.backlogged = false
			sub.Resume()
		})
	}
	s.settle()
	s.do(func() {
		if len(r.ids) != n || r.unused > r.written/4 {
			t.Errorf("%d messages in %d writes; charged for %d bytes, and for %d in vain", len(r.ids), r.writes, r.written, r.unused)
		}
	})
}

// TestDebtPausesCatchUp checks that the store is not read for a subscriber that is in debt, and
// that the next tick continues.
func TestDebtPausesCatchUp(t *testing.T) {
	s := newHarness(t, queue.Options{})
	before := s.appendLarge("a", 100)
	s.subscribe("a", nil)
	pos, err := s.Acquire(t.Context(), "a", &before)
	if err != nil {
		t.Fatal(err)
	}
	r, sub := &recorder{inDebt: true}, new(Subscription)
	reads := s.queue.readCount()
	s.do(func() {
		s.Subscribe(sub, s.loop, r, pos)
		sub.Start()
	})
	s.settle()
	s.Tick()
	s.settle()
	if n := s.queue.readCount(); n != reads {
		t.Errorf("%d reads for a subscriber in debt", n-reads)
	}
	s.do(func() { r.inDebt = false })
	s.Tick()
	s.settle()
	s.do(func() {
		if len(r.ids) != 100 {
			t.Errorf("%d messages were delivered", len(r.ids))
		}
	})
}
