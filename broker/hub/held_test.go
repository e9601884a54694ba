package hub

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"switchboard/internal/state"
	"switchboard/queue"
)

// TestHeldSubscription checks that nothing is delivered to a subscription until Start, also if the
// hub ticks or the socket becomes writable.
func TestHeldSubscription(t *testing.T) {
	s := newHarness(t, queue.Options{})
	pos, err := s.Acquire(t.Context(), "a", nil)
	if err != nil {
		t.Fatal(err)
	}
	r, sub := &reader{}, new(Subscription)
	s.do(func() {
		if err := s.SubscribeState(sub, s.loop, r, pos, everything); err != nil {
			t.Error(err)
		}
	})
	s.update(true, state.Update{Ops: []state.Op{set("x")}})
	s.Tick()
	s.settle()
	s.do(func() {
		if sub.Resume(); !sub.Held() || len(r.got) > 0 {
			t.Errorf("held %v, received %q before Start", sub.Held(), r.got)
		}
		if sub.Start(); sub.Held() || len(r.got) != 1 {
			t.Errorf("held %v, received %q after Start", sub.Held(), r.got)
		}
	})
	if n := s.Channel("a").StateSubscribers(); n != 1 {
		t.Errorf("%d state subscribers, want 1", n)
	}
	s.do(func() { s.Unsubscribe(sub) })
	if n := s.Channel("a").StateSubscribers(); n != 0 {
		t.Errorf("%d state subscribers, want none", n)
	}
}

// TestGapHoldsTheDelivery checks that a subscriber can stop the delivery in Gap, and how often its
// pages were overtaken.
func TestGapHoldsTheDelivery(t *testing.T) {
	s := newHarness(t, queue.Options{ChannelCap: 2})
	r, sub := s.read(everything, nil)
	var overtaken []int
	r.gap = func(sub *Subscription) bool {
		overtaken = append(overtaken, sub.Overtaken())
		return true
	}
	push := func(n int) {
		for i := range n {
			s.update(true, state.Update{Ops: []state.Op{set(fmt.Sprint("x", i))}})
		}
		s.settle()
	}
	s.do(func() { r.backlogged = true })
	push(maxTailMessages + 10) // the tail does not reach back to the cursor
	s.do(func() { r.backlogged = false; sub.Resume() })
	s.settle()
	for range 2 {
		s.do(func() {
			if !sub.Held() || !strings.HasPrefix(r.got[len(r.got)-1], "gap ") {
				t.Fatalf("held %v, the last message is %q; want a gap", sub.Held(), r.got[len(r.got)-1])
			}
		})
		push(maxTailMessages + 10)
		s.do(sub.Start)
		s.settle()
	}
	if !slices.Equal(overtaken, []int{0, 1, 2}) {
		t.Errorf("overtaken %v before each gap, want 0, 1, 2", overtaken)
	}
	before := len(r.got)
	s.do(sub.Start)
	s.settle()
	s.do(func() {
		if sub.Overtaken() != 0 || len(r.got) != before+2 {
			t.Errorf("overtaken %d, %d messages; want 0 and 2, when it has caught up", sub.Overtaken(), len(r.got)-before)
		}
	})
}

// TestLossMarkerIsAGap checks that a subscriber of the state receives a loss marker as a call of
// Gap, between the messages before it and those after it.
func TestLossMarkerIsAGap(t *testing.T) {
	s := newHarness(t, queue.Options{})
	data, _ := s.read(state.Filter{}, nil)
	r, sub := s.read(everything, nil)
	r.gap = func(*Subscription) (hold bool) { return true }
	first := s.update(true, state.Update{Ops: []state.Op{set("x")}})
	m, err := s.queue.ConfirmChannel(t.Context(), "a", first.ID+1000)
	if err != nil || m == nil {
		t.Fatal(m, err)
	}
	s.Channel("a").Hint(m.ID, m.Prev, m.Data)
	s.update(true, state.Update{Ops: []state.Op{set("y")}, Data: []byte("2")})
	s.settle()
	gap := fmt.Sprintf("gap %d to %d", first.ID, first.ID+1000)
	s.do(func() {
		if want := []string{`{"set":{"x":1}}`, gap}; !slices.Equal(r.got, want) || !sub.Held() || sub.Cursor() != m.ID {
			t.Errorf("got %q at %d, want %q at the marker %d", r.got, sub.Cursor(), want, m.ID)
		}
		sub.Start()
		if want := []string{`{"set":{"x":1}}`, gap, `2{"set":{"y":1}}`}; !slices.Equal(r.got, want) {
			t.Errorf("got %q, want %q", r.got, want)
		}
		if want := []string{"gap event" + strings.TrimPrefix(gap, "gap"), "2"}; !slices.Equal(data.got, want) {
			t.Errorf("without the state: got %q, want %q", data.got, want)
		}
	})
}

// TestLossMarkersDoNotOvertake checks that markers in a row do not count as useless pages. A client
// that was closed for them would resume before them, and be closed again.
func TestLossMarkersDoNotOvertake(t *testing.T) {
	s := newHarness(t, queue.Options{})
	first := s.update(false, state.Update{Ops: []state.Op{set("x")}})
	lost := first.ID
	for range 3 {
		lost += 1000
		m, err := s.queue.ConfirmChannel(t.Context(), "a", lost)
		if err != nil || m == nil {
			t.Fatal(m, err)
		}
		lost = m.ID
	}
	pos, err := s.Acquire(t.Context(), "a", &first.ID)
	if err != nil {
		t.Fatal(err)
	}
	var overtaken []int
	r, sub := &reader{}, new(Subscription)
	r.gap = func(sub *Subscription) bool {
		overtaken = append(overtaken, sub.Overtaken())
		return true
	}
	s.do(func() {
		if err := s.SubscribeState(sub, s.loop, r, pos, everything); err != nil {
			t.Error(err)
		}
	})
	for range 4 {
		s.do(sub.Start)
		s.settle()
	}
	s.do(func() {
		if !slices.Equal(overtaken, []int{0, 0, 0}) || sub.Held() {
			t.Errorf("overtaken %v before each gap, held %v; want 0 before each of 3 gaps, and not held", overtaken, sub.Held())
		}
	})
}
