package binding

import (
	"sync"
	"testing"
	"testing/synctest"
)

// TestClientLocks checks that one goroutine at a time holds a client's lock, that all get it, that
// tryLock does not overtake those that wait, and that nothing is left.
func TestClientLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c clientLocks
		unlock, ok := c.tryLock("amy")
		if _, again := c.tryLock("amy"); !ok || again {
			t.Fatalf("tryLock: %v, and again: %v", ok, again)
		}
		amy, bob := new(int), new(int)
		var all sync.WaitGroup
		for range 50 {
			for client, n := range map[string]*int{"amy": amy, "bob": bob} {
				all.Go(func() {
					unlock := c.lock(client)
					*n++ // the race detector sees another holder
					unlock()
				})
			}
		}
		synctest.Wait()
		if *amy != 0 || *bob != 50 {
			t.Errorf("%d goroutines had the lock that is held, and %d the other one", *amy, *bob)
		}
		if _, overtakes := c.tryLock("amy"); overtakes {
			t.Error("tryLock overtakes")
		}
		unlock()
		all.Wait()
		if *amy != 50 || len(c.locks) != 0 {
			t.Errorf("%d goroutines had the lock, and %d locks are left", *amy, len(c.locks))
		}
	})
}
