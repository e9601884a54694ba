package peer

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestMiss checks that a receiver has a doubt after Miss, on an idle link too, and that the hints
// after it arrive.
func TestMiss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := virtualPair(t)
		<-time.After(10 * time.Second)
		a.Miss("b")
		if doubts := b.doubtsFor(10 * time.Second); len(doubts) != 1 { // when depends on the next batch
			t.Errorf("on an idle link: %v, want one doubt", doubts)
		}
		a.send("b", 1)
		a.Miss("b")
		synctest.Wait()
		a.send("b", 1)
		b.expectDoubts("between two hints", 10*time.Second, "a 0s")
		if n := b.received.Load(); n != 2 || a.missed.Load() != 2 {
			t.Errorf("%d hints are received and %d missed, want 2 and 2", n, a.missed.Load())
		}
	})
}

// TestMissBeforeTheLink checks that Miss counts for a server that is not on the list yet.
func TestMissBeforeTheLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newVirtualNet()
		a, b := n.start(t, "a", nil), n.start(t, "b", nil)
		a.Miss("b")
		a.Miss("")
		a.list("b")
		b.list("a")
		b.expectDoubts("the first link", 10*time.Second, "a 0s")
	})
}

// TestMissAndGoodbye checks that a goodbye after Miss is no proof.
func TestMissAndGoodbye(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := virtualPair(t)
		a.send("b", 1)
		a.Miss("b")
		a.Goodbye(t.Context())
		b.expectDoubts("after the goodbye", time.Second, "a 0s")
	})
}
