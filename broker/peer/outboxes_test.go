package peer

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestOutboxesAreBounded checks that the outboxes of servers that are not on the list are bounded,
// and that a count which was forgotten too early is never one that a receiver expects.
func TestOutboxesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := outboxes{byServer: make(map[string]*outbox)}
		b.list("live").add(Hint{}, false)
		b.get("away").add(Hint{}, false)
		fill := func(name string, n int) {
			for i := range n {
				<-time.After(time.Millisecond)
				b.get(fmt.Sprint(name, i)).add(Hint{}, false)
			}
		}
		<-time.After(rememberUnlisted)
		fill("old", maxUnlisted) // replaces away
		if b.unlisted != maxUnlisted || len(b.byServer) != maxUnlisted+1 || b.first != 0 {
			t.Errorf("%d of %d are not on the list; new ones begin with %d", b.unlisted, len(b.byServer), b.first)
		}
		<-time.After(rememberUnlisted)
		fill("young", maxUnlisted)
		if b.unlisted != maxUnlisted || b.first != 0 {
			t.Errorf("%d are not on the list; new ones begin with %d", b.unlisted, b.first)
		}
		b.get("one more")
		b.get("another one")
		if got := b.get("young1").count(); got != 2 || b.unlisted != maxUnlisted {
			t.Errorf("a server that was forgotten within a minute begins with %d, want 2: it expects 0 or 1", got)
		}
		if got := b.get("live").count(); got != 1 {
			t.Errorf("%d hints to the server on the list, want 1", got)
		}
		b.unlist("live")
		b.unlist("live")
		b.unlist("unknown")
		if b.list("live"); b.unlisted != maxUnlisted {
			t.Errorf("%d are not on the list, want %d", b.unlisted, maxUnlisted)
		}
	})
}
