package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"switchboard/queue"
)

// compare compares everything and waits for what that starts. It returns the number of reads.
func (s *harness) compare() int {
	s.t.Helper()
	before := s.queue.readCount()
	s.compareNow()
	s.settle()
	return s.queue.readCount() - before
}

// compareNow compares everything. Reads that it starts may go on.
func (s *harness) compareNow() {
	s.t.Helper()
	if err := s.Compare(context.Background(), 0); err != nil {
		s.t.Error(err)
	}
}

func (s *harness) expectReads(what string, got, want int) {
	s.t.Helper()
	if got != want {
		s.t.Errorf("%s: %d reads of channels, want %d", what, got, want)
	}
}

// TestCompare checks that only channels that differ from the store are read.
func TestCompare(t *testing.T) {
	s := newHarness(t, queue.Options{})
	subscribers := map[string]*recorder{}
	for i := range 2*comparedPerCall + 3 {
		name := fmt.Sprint(i)
		subscribers[name], _, _ = s.subscribe(name, nil)
	}
	s.expectReads("without messages", s.compare(), 0)
	if n := len(s.queue.takeCompared()); n != len(subscribers) {
		t.Errorf("%d channels were compared, want %d", n, len(subscribers))
	}
	hinted := s.append("1", 2)
	for _, a := range hinted {
		hint(s.Channel("1"), a)
	}
	s.settle()
	s.expectReads("without a lost hint", s.compare(), 0)
	silent := s.append("2", 2)
	s.expectReads("with lost hints of one channel", s.compare(), 1)
	s.expect(subscribers["2"], silent, "without hints")
	s.expect(subscribers["1"], hinted, "with hints")
	s.expectReads("again", s.compare(), 0)
}

// TestCompareStates checks that CompareStates concerns only channels with states.
func TestCompareStates(t *testing.T) {
	s := newHarness(t, queue.Options{})
	s.subscribe("b", nil)
	s.read(everything, nil) // of channel a
	if err := s.CompareStates(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if got := s.queue.takeCompared(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("%q were compared, want the channel with a state", got)
	}
}

// TestCompareAfterFailover checks that a store that is behind the tail is noticed, also if the
// channel has no message there.
func TestCompareAfterFailover(t *testing.T) {
	for _, kept := range []int{0, 1} {
		s := newHarness(t, queue.Options{})
		r, _, _ := s.subscribe("a", nil)
		stored := s.append("a", kept)
		for _, a := range stored {
			hint(s.Channel("a"), a)
		}
		lost := queue.Appended{ID: queue.IDAt(time.Now())}
		if kept > 0 {
			lost = queue.Appended{ID: stored[0].ID + 1, Prev: stored[0].ID}
		}
		hint(s.Channel("a"), lost) // the store no longer has it
		s.expect(r, append(stored, lost), "before")
		if s.compare() == 0 {
			t.Error("the store is behind: no read")
		}
		s.do(func() {
			if len(r.gaps) != 1 {
				t.Errorf("gaps %v, want one", r.gaps)
			}
		})
	}
}

// TestCompareRaces checks a comparison at the same time as a hint or a read.
func TestCompareRaces(t *testing.T) {
	s := newHarness(t, queue.Options{})
	r, _, _ := s.subscribe("a", nil)
	stored := s.append("a", 1)
	hint(s.Channel("a"), stored[0])
	s.settle()
	another := func() {
		stored = append(stored, s.append("a", 1)...)
		hint(s.Channel("a"), stored[len(stored)-1])
	}
	s.queue.beforeHeads, s.queue.afterHeads = another, another
	s.expectReads("the tail was extended meanwhile", s.compare(), 0)
	s.expect(r, stored, "with a hint during the comparison")

	s.queue.afterRead = func() { // this read does not see the message, whose hint is lost
		stored = append(stored, s.append("a", 1)...)
		s.compareNow()
	}
	s.Channel("a").MarkDirty()
	s.settle()
	s.expect(r, stored, "compared during a read")
}

// TestCompareWhileBinding checks that a comparison makes a channel that is being bound read once
// more: its first read may be over.
func TestCompareWhileBinding(t *testing.T) {
	s := newHarness(t, queue.Options{})
	var silent []queue.Appended
	s.queue.afterRead = func() {
		silent = s.append("a", 1)
		s.compareNow()
	}
	r, _, _ := s.subscribe("a", nil)
	s.settle()
	s.expect(r, silent, "stored after the first read")
}

// TestFailuresAreRepeated checks that only what failed is repeated, with growing pauses.
func TestFailuresAreRepeated(t *testing.T) {
	s := newHarness(t, queue.Options{})
	a, _, _ := s.subscribe("a", nil)
	s.subscribe("b", nil)
	errUnavailable := errors.New("unavailable")
	type work struct {
		what    string
		fail    func()
		repeats func() int
	}
	reads := work{"reads", func() { s.Channel("a").MarkDirty() }, s.queue.readCount}
	comparisons := work{"comparisons", func() {
		if err := s.compareChunk(t.Context(), []*Channel{s.Channel("a")}); !errors.Is(err, errUnavailable) {
			t.Errorf("the comparison returned %v", err)
		}
	}, func() int {
		s.queue.mu.Lock()
		defer s.queue.mu.Unlock()
		return len(s.queue.compared)
	}}
	for _, c := range []work{reads, comparisons, reads, comparisons} {
		what := c.what
		s.queue.setError(errUnavailable)
		c.fail()
		s.settle()
		before := c.repeats()
		for range 7 {
			s.Tick()
			s.settle()
		}
		if n := c.repeats() - before; n != 3 {
			t.Errorf("%s: %d in 7 ticks, want 3, after 1, 3 and 7", what, n)
		}
		silent := s.append("a", 1)
		s.queue.setError(nil)
		for range 4 {
			s.Tick()
			s.settle()
		}
		s.do(func() {
			if len(a.ids) == 0 || a.ids[len(a.ids)-1] != silent[0].ID {
				t.Errorf("%s: received %v after the failures, want %d", what, a.ids, silent[0].ID)
			}
		})
		before = c.repeats()
		s.Tick()
		s.settle()
		if n := c.repeats() - before; n != 0 {
			t.Errorf("%s: %d after a success", what, n)
		}
	}
	if slices.Contains(s.queue.takeCompared(), "b") {
		t.Error("the other channel was compared too")
	}
}

// TestFailedReadOfAnUnboundChannel checks that a failed read of a channel that is unbound meanwhile
// is forgotten.
func TestFailedReadOfAnUnboundChannel(t *testing.T) {
	s := newHarness(t, queue.Options{})
	_, sub, _ := s.subscribe("a", nil)
	s.queue.setError(errors.New("unavailable"))
	s.Channel("a").MarkDirty()
	s.settle()
	s.do(func() { s.Unsubscribe(sub) })
	for range 3 {
		s.Tick()
		s.settle()
	}
	if s.Channel("a") != nil {
		t.Fatal("the channel is bound")
	}
	if due := s.drains.Tick(); len(due) > 0 {
		t.Errorf("%q are to be read again", due)
	}
}
