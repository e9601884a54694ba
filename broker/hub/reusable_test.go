package hub

import (
	"testing"

	"switchboard/queue"
)

// TestNotReusableWhileReading checks that a subscription that ended during a read is not reusable
// until the read returns: a later subscription in the same value must not receive the answer.
func TestNotReusableWhileReading(t *testing.T) {
	s := newHarness(t, queue.Options{})
	slow, sub, _ := s.subscribe("a", nil)
	s.do(func() { slow.backlogged = true })
	for _, a := range s.append("a", 1000) { // more than the tail holds
		hint(s.Channel("a"), a)
	}
	s.settle()
	afterRead := false
	s.queue.afterRead = func() {
		s.do(func() {
			afterRead = true
			s.Unsubscribe(sub)
			if sub.Active() || sub.Reusable() {
				t.Error("a subscription that ended while it reads is active, or reusable before the answer")
			}
		})
	}
	s.do(func() { slow.backlogged = false; sub.Resume() })
	s.settle()
	s.do(func() {
		if !afterRead || !sub.Reusable() || slow.writes != 0 {
			t.Errorf("read %v, reusable %v after the answer, %d writes; want true, true, none", afterRead, sub.Reusable(), slow.writes)
		}
	})
}
