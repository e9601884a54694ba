package hub

import (
	"testing"

	"switchboard/queue"
)

// TestNotVacantWhileItReads: the answer to a read belongs to the subscription that asked, and not to one that is kept
// in the same place behind it.
func TestNotVacantWhileItReads(t *testing.T) {
	s := newHarness(t, queue.Options{})
	slow, sub, _ := s.subscribe("a", nil)
	s.do(func() { slow.backlogged = true })
	for _, a := range s.append("a", 1000) { // more than the tail holds
		hint(s.Channel("a"), a)
	}
	s.settle()
	asked := false
	s.queue.afterRead = func() {
		s.do(func() {
			asked = true
			s.Unsubscribe(sub)
			if sub.Active() || sub.Reusable() {
				t.Error("a subscription that ended while it reads is active, or vacant before the answer")
			}
		})
	}
	s.do(func() { slow.backlogged = false; sub.Resume() })
	s.settle()
	s.do(func() {
		if !asked || !sub.Reusable() || slow.writes != 0 {
			t.Errorf("read %v, vacant %v behind the answer, %d writes; want true, true, none", asked, sub.Reusable(), slow.writes)
		}
	})
}
