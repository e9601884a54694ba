package presence

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"switchboard/registry"
)

// TestManyChannels checks that changes of several channels share store calls, that the
// changes of each channel stay in order, and that the next tick repeats a failed write.
func TestManyChannels(t *testing.T) {
	const channels = 2000
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, 0, "a")
		n := w.nodes["a"]
		name := func(i int) string { return fmt.Sprint("own-", i) }
		expectStored := func(when, client string) {
			t.Helper()
			for i := range channels {
				if got := w.stored(name(i), "a"); fmt.Sprint(got) != "["+client+"]" {
					t.Fatalf("%s: %s has %v, want %s", when, name(i), got, client)
				}
			}
		}
		expectCalls := func(when string, most int) {
			t.Helper()
			n.mu.Lock()
			defer n.mu.Unlock()
			if n.calls > most {
				t.Errorf("%s: %d calls to the store, want at most %d", when, n.calls, most)
			}
			n.calls = 0
		}
		n.members["phone"] = registry.Member{Client: "phone", Generation: 1}
		for i := range channels {
			n.Join(name(i), n.members["phone"])
		}
		w.waitASecond()
		expectStored("at first", "phone")
		expectCalls("at first", channels/maxChange+2)

		n.failCalls(3, true)
		delete(n.members, "phone")
		n.members["pad"] = registry.Member{Client: "pad", Generation: 2}
		for i := range channels {
			n.Join(name(i), n.members["pad"])
			n.Leave(name(i), "phone", 1)
			n.Join(name(i), registry.Member{Client: "pad", Generation: 1}) // an older connection: no effect
		}
		w.waitASecond()
		expectCalls("when some failed", 3*channels/maxChange+2)
		w.settle()
		expectStored("when some failed", "pad")
		for i := range channels {
			r, err := w.store.Roster(t.Context(), "a", name(i))
			if w.check(err); r.Members[0].Generation != 2 {
				t.Fatalf("%s has an older connection: %v", name(i), r.Members)
			}
		}
		if len(n.pending)+len(n.due) != 0 || n.writing {
			t.Errorf("left to write: %d rosters, %d due", len(n.pending), len(n.due))
		}
	})
}

// TestLargeChange checks that a large change takes several calls and that other channels do not
// wait for it.
func TestLargeChange(t *testing.T) {
	const clients = 3*maxChange + 1
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, 0, "a")
		n := w.nodes["a"]
		for i := range clients {
			n.Join("large", registry.Member{Client: fmt.Sprintf("c-%04d", i), Generation: 1})
			n.Join(fmt.Sprint("small-", i%3), registry.Member{Client: "x", Generation: int64(i)})
		}
		w.waitASecond()
		got := w.stored("large", "a")
		if len(got) != clients || !slices.IsSorted(got) {
			t.Errorf("large has %d clients, want %d", len(got), clients)
		}
		for i := range 3 {
			if got := w.stored(fmt.Sprint("small-", i), "a"); fmt.Sprint(got) != "[x]" {
				t.Errorf("small-%d has %v", i, got)
			}
		}
	})
}

// TestStopCoalescing checks that after StopCoalescing, waiting for the pool waits for all changes.
func TestStopCoalescing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, 0, "a")
		n := w.nodes["a"]
		join := func(client string) {
			n.Join("room", registry.Member{Client: client, Generation: 1})
			n.opts.Pool.Wait()
		}
		expectStored := func(want ...string) {
			t.Helper()
			if got := w.stored("room", "a"); !slices.Equal(got, want) {
				t.Errorf("the store has %v, want %v", got, want)
			}
		}
		join("phone")
		join("pad")
		expectStored("phone")
		n.StopCoalescing()
		n.opts.Pool.Wait()
		expectStored("pad", "phone")
		join("tv")
		join("watch")
		expectStored("pad", "phone", "tv", "watch")
		w.waitASecond() // until the workers have ended
	})
}
