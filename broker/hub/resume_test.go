package hub

import (
	"testing"
	"time"

	"switchboard/broker/work"
	"switchboard/internal/wire"
	"switchboard/queue"
	"switchboard/registry"
)

// TestManyResumesReadTheStoreOnce checks that only the first of many subscribers that resume reads
// the store. The others find the messages in the tail.
func TestManyResumesReadTheStoreOnce(t *testing.T) {
	s := newHarness(t, queue.Options{})
	stored := s.append("a", 10)
	s.subscribe("a", nil)
	s.settle()
	if _, ok := s.TryAcquire("a", &stored[2].ID); ok {
		t.Fatal("the tail already reaches back that far")
	}
	before := s.queue.readCount()
	var recorders []*recorder
	for range 20 {
		r, _, pos := s.subscribe("a", &stored[2].ID)
		if !pos.Recovered {
			t.Fatal("not recovered")
		}
		recorders = append(recorders, r)
	}
	later, _, _ := s.subscribe("a", &stored[5].ID)
	earlier, _, _ := s.subscribe("a", &stored[0].ID)
	if n := s.queue.readCount() - before; n != 2 {
		t.Errorf("%d reads of the store, want 2: one each time the tail had to be extended backward", n)
	}
	pos, ok := s.TryAcquire("a", &stored[1].ID)
	if !ok || pos.Cursor != stored[1].ID || !pos.Recovered {
		t.Errorf("TryAcquire returns %+v, %v for a position within the tail", pos, ok)
	} else {
		s.Release(pos.Channel)
	}
	unknown := stored[0].ID - 1
	for _, after := range []int64{unknown, stored[9].ID + 1} {
		if _, ok := s.TryAcquire("a", &after); ok {
			t.Errorf("TryAcquire accepts the unknown position %d", after)
		}
	}
	more := s.append("a", 1)
	hint(s.Channel("a"), more[0])
	for _, r := range recorders {
		s.expect(r, append(stored[3:10:10], more...), "resumed")
	}
	s.expect(later, append(stored[6:10:10], more...), "resumed later")
	s.expect(earlier, append(stored[1:10:10], more...), "resumed from an earlier position")
}

// TestPrependKeepsTheTailBounded checks that a page that exceeds the tail's limits is not
// prepended.
func TestPrependKeepsTheTailBounded(t *testing.T) {
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
	if len(tl.messages) > maxTailMessages || tl.messages[0].ID != stored[50].ID {
		t.Errorf("the tail has %d messages from %d on", len(tl.messages), tl.messages[0].ID)
	}
}

// TestPrependKeepsTheLossMarker checks that a marker in a prepended page counts for subscribers
// that resume before it.
func TestPrependKeepsTheLossMarker(t *testing.T) {
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
		t.Errorf("TryAcquire returns %+v, %v", pos, ok)
	}
}

// TestFirstReadResumesAnEmptyChannel checks a server that has read nothing yet, so it does not know
// the store's time. It must recover a client that saw an empty channel on another server.
func TestFirstReadResumesAnEmptyChannel(t *testing.T) {
	store, bindings := queue.NewMemory(queue.Options{}, nil), registry.NewMemory(registry.Options{})
	server := func(id string) *Hub {
		return New(Options{
			Pool: work.New(1), Registry: bindings, Queue: store, ServerID: func() string { return id },
			Messages: maker, PositionTTL: time.Hour,
		})
	}
	for _, name := range []string{wire.AllChannel, "news"} {
		first, err := server("a").Acquire(t.Context(), name, nil)
		if err != nil || first.ResumeID == 0 {
			t.Fatalf("%s: %+v, %v", name, first, err)
		}
		fresh := server("b")
		pos, err := fresh.Acquire(t.Context(), name, fresh.ResumeCursor(&first.ResumeID))
		if err != nil || !pos.Recovered || pos.Cursor != 0 {
			t.Errorf("%s: a fresh server resumes at %+v, %v", name, pos, err)
		}
	}
}
