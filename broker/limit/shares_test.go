package limit

import "testing"

// TestShares: a sender has its own bound, which Give restores, and leaves nothing.
func TestShares(t *testing.T) {
	s := NewShares(2)
	alice, bob := senderOf("alice", "", nil), senderOf("bob", "", nil)
	for i, c := range []struct {
		sender Sender
		want   bool
	}{{alice, true}, {alice, true}, {alice, false}, {bob, true}} {
		if got := s.Take(c.sender); got != c.want {
			t.Errorf("call %d of Take: %v", i, got)
		}
	}
	s.Give(alice)
	if !s.Take(alice) || s.Take(alice) {
		t.Error("after Give, want one more for alice")
	}
	for range 2 {
		s.Give(alice)
	}
	s.Give(bob)
	if len(s.used) > 0 {
		t.Errorf("left: %v", s.used)
	}
	none := NewShares(0)
	if !none.Take(alice) {
		t.Error("no bound refuses")
	}
	none.Give(alice)
}
