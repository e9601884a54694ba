package hub

import (
	"slices"
	"testing"
	"time"

	"switchboard/queue"
)

// TestStoreLosesMessages checks a failover after which the store lacks the last messages: the
// subscriber receives a gap at once, and then later messages.
func TestStoreLosesMessages(t *testing.T) {
	s := newHarness(t, queue.Options{})
	r, _, _ := s.subscribe("a", nil)
	stored := s.append("a", 3)
	for _, a := range stored {
		hint(s.Channel("a"), a)
	}
	s.expect(r, stored, "before")
	later := func() time.Time { return time.Now().Add(time.Minute) }
	s.queue.Memory = queue.NewMemory(queue.Options{Now: later}, nil)
	s.compare()
	s.do(func() {
		if len(r.gaps) != 1 || r.gaps[0] != 0 {
			t.Errorf("gaps %v: the gap must be sent at once", r.gaps)
		}
	})
	after := s.append("a", 1)
	hint(s.Channel("a"), after[0])
	s.settle()
	s.do(func() {
		if len(r.gaps) != 1 || r.ids[len(r.ids)-1] != after[0].ID {
			t.Errorf("gaps %v, ids %v: the later message must be delivered", r.gaps, r.ids)
		}
	})
}

// TestLossMarker checks that the marker of a loss is delivered in order, to subscribers that are
// connected and to those that resume.
func TestLossMarker(t *testing.T) {
	s := newHarness(t, queue.Options{})
	r, _, _ := s.subscribe("a", nil)
	stored := s.append("a", 3)
	for _, a := range stored {
		hint(s.Channel("a"), a)
	}
	lost := stored[2].ID + 1000
	m, err := s.queue.ConfirmChannel(t.Context(), "a", lost)
	if err != nil || m == nil {
		t.Fatal(m, err)
	}
	s.Channel("a").Hint(m.ID, m.Prev, m.Data)
	more := s.append("a", 1)
	hint(s.Channel("a"), more[0])
	want := []int64{stored[0].ID, stored[1].ID, stored[2].ID, -lost, more[0].ID}
	check := func(r *recorder, want []int64) {
		t.Helper()
		s.settle()
		s.do(func() {
			if !slices.Equal(r.ids, want) {
				t.Errorf("got %v, want %v; the negative id is the gap", r.ids, want)
			}
		})
	}
	check(r, want)
	for i := range 3 {
		resumed, _, pos := s.subscribe("a", &stored[i].ID)
		check(resumed, want[i+1:])
		if pos.Recovered {
			t.Error("recovered, although something is missing")
		}
	}
	resumed, _, pos := s.subscribe("a", &more[0].ID)
	check(resumed, nil)
	if !pos.Recovered {
		t.Error("not recovered, although nothing after it is missing")
	}
	s.Tick() // drops the tail's messages, so that the next subscribers read the store
	s.Tick()
	for i := range 3 {
		resumed, _, pos := s.subscribe("a", &stored[i].ID)
		check(resumed, want[i+1:])
		if pos.Recovered {
			t.Error("recovered from the store, although something is missing")
		}
	}
}
