package hub

import (
	"testing"

	"switchboard/queue"
)

// TestCrowdThatResumesReadsTheStoreOnce: all but the first find in the tail what they missed.
func TestCrowdThatResumesReadsTheStoreOnce(t *testing.T) {
	s := newHarness(t, queue.Options{})
	stored := s.append("a", 10)
	s.subscribe("a", nil)
	s.settle()
	if _, ok := s.TryAcquire("a", &stored[2].ID); ok {
		t.Fatal("the tail reaches back already")
	}
	before := s.queue.readCount()
	var crowd []*recorder
	for range 20 {
		r, _, pos := s.subscribe("a", &stored[2].ID)
		if !pos.Recovered {
			t.Fatal("not recovered")
		}
		crowd = append(crowd, r)
	}
	later, _, _ := s.subscribe("a", &stored[5].ID)
	earlier, _, _ := s.subscribe("a", &stored[0].ID)
	if n := s.queue.readCount() - before; n != 2 {
		t.Errorf("%d reads of the store, want 2: one for each time that the tail had to reach back", n)
	}
	pos, ok := s.TryAcquire("a", &stored[1].ID)
	if !ok || pos.Cursor != stored[1].ID || !pos.Recovered {
		t.Errorf("Try gives %+v, %v for a place within the tail", pos, ok)
	} else {
		s.Release(pos.Channel)
	}
	unknown := stored[0].ID - 1
	for _, after := range []int64{unknown, stored[9].ID + 1} {
		if _, ok := s.TryAcquire("a", &after); ok {
			t.Errorf("Try takes %d for known", after)
		}
	}
	more := s.append("a", 1)
	hint(s.Channel("a"), more[0])
	for _, r := range crowd {
		s.expect(r, append(stored[3:10:10], more...), "resumed")
	}
	s.expect(later, append(stored[6:10:10], more...), "resumed later")
	s.expect(earlier, append(stored[1:10:10], more...), "resumed from further back")
}

// TestTailReachesBackNoFurtherThanItMay: who comes from further back reads the store, as ever.
func TestTailReachesBackNoFurtherThanItMay(t *testing.T) {
	s := newHarness(t, queue.Options{})
	r, _, _ := s.subscribe("a", nil)
	stored := s.append("a", maxTailMessages+50)
	for _, a := range stored {
		hint(s.Channel("a"), a)
	}
	s.expect(r, stored, "followed")
	for range 3 {
		r, _, _ := s.subscribe("a", &stored[0].ID)
		s.expect(r, stored[1:], "resumed from the beginning")
	}
	tl := s.Channel("a").tail.Load()
	if len(tl.entries) > maxTailMessages || tl.entries[0].id != stored[50].ID {
		t.Errorf("the tail has %d messages from %d on", len(tl.entries), tl.entries[0].id)
	}
}

// TestTailThatReachesBackHasItsGap: a marker in what was read counts for those who resume before it.
func TestTailThatReachesBackHasItsGap(t *testing.T) {
	s := newHarness(t, queue.Options{})
	stored := s.append("a", 2)
	lost := stored[1].ID + 1000
	m, err := s.queue.ConfirmChannel(t.Context(), "a", lost)
	if err != nil || m == nil {
		t.Fatal(m, err)
	}
	s.append("a", 1)
	s.subscribe("a", nil)
	for range 2 {
		r, _, pos := s.subscribe("a", &stored[0].ID)
		if pos.Recovered {
			t.Error("recovered across a gap")
		}
		s.do(func() {
			if len(r.ids) != 3 || r.ids[1] != -lost {
				t.Errorf("got %v, want a gap in the second place", r.ids)
			}
		})
	}
	if pos, ok := s.TryAcquire("a", &stored[0].ID); !ok || pos.Recovered {
		t.Errorf("Try gives %+v, %v", pos, ok)
	}
}
