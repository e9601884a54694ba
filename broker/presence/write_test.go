package presence

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"switchboard/registry"
)

// TestManyChannels: the changes of channels that come at once go together, each channel's in its
// order, and what fails is written by the next tick.
func TestManyChannels(t *testing.T) {
	const channels = 2000
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, 0, "a")
		n := w.nodes["a"]
		name := func(i int) string { return fmt.Sprint("own-", i) }
		wants := func(when string, client string) {
			t.Helper()
			for i := range channels {
				if got := w.stored(name(i), "a"); fmt.Sprint(got) != "["+client+"]" {
					t.Fatalf("%s %s holds %v, want %s", when, name(i), got, client)
				}
			}
		}
		calls := func(when string, most int) {
			t.Helper()
			n.mu.Lock()
			defer n.mu.Unlock()
			if n.calls > most {
				t.Errorf("%s: %d calls to the store, want %d at most", when, n.calls, most)
			}
			n.calls = 0
		}
		n.members["phone"] = registry.Member{Client: "phone", Generation: 1}
		for i := range channels {
			n.Join(name(i), n.members["phone"])
		}
		w.waitASecond()
		wants("at first", "phone")
		calls("at first", channels/maxChange+2)

		n.failCalls(3, true)
		delete(n.members, "phone")
		n.members["pad"] = registry.Member{Client: "pad", Generation: 2}
		for i := range channels {
			n.Join(name(i), n.members["pad"])
			n.Leave(name(i), "phone", 1)
			n.Join(name(i), registry.Member{Client: "pad", Generation: 1}) // says nothing behind the younger
		}
		w.waitASecond()
		calls("when some failed", 3*channels/maxChange+2)
		w.settle()
		wants("when some failed", "pad")
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

// TestLargeChange goes in several calls, and does not take others with it that would wait for them.
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
			t.Errorf("large holds %d clients, want %d", len(got), clients)
		}
		for i := range 3 {
			if got := w.stored(fmt.Sprint("small-", i), "a"); fmt.Sprint(got) != "[x]" {
				t.Errorf("small-%d holds %v", i, got)
			}
		}
	})
}

// TestHurry: who waits for the pool then waits for the changes that are gathered, and for those
// that come behind.
func TestHurry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, 0, "a")
		n := w.nodes["a"]
		join := func(client string) {
			n.Join("room", registry.Member{Client: client, Generation: 1})
			n.opts.Pool.Wait()
		}
		holds := func(want ...string) {
			t.Helper()
			if got := w.stored("room", "a"); !slices.Equal(got, want) {
				t.Errorf("the store has %v, want %v", got, want)
			}
		}
		join("phone")
		join("pad")
		holds("phone")
		n.StopCoalescing()
		n.opts.Pool.Wait()
		holds("pad", "phone")
		join("tv")
		join("watch")
		holds("pad", "phone", "tv", "watch")
		w.waitASecond() // until the workers have gone home
	})
}
