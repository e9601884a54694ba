package presence

import (
	"fmt"
	"testing"
	"testing/synctest"

	"switchboard/internal/slots"
	"switchboard/registry"
)

// loseWatch lets the store lose that the server watches bob.
func (w *world) loseWatch(server string) {
	watch := registry.UserWatch{User: "bob", Server: server}
	watch.Number = w.store.WatchUsers(w.t.Context(), server, []string{"bob"})[0].Number
	w.check(w.store.UnwatchUsers(w.t.Context(), []registry.UserWatch{watch}))
}

// TestUserWatch checks that a server is registered in the store while it watches a user, and that
// one read is enough then.
func TestUserWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, 0, "a", "b")
		expect := func(generation int64, want ...string) {
			t.Helper()
			if got := w.bindSilently("phone", "b", generation); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("the watching servers are %v, want %v", got, want)
			}
		}
		expect(1)
		first := w.nodes["a"].watchUser("x")
		expect(2, "a")
		w.tickSeconds(10)
		if n := w.nodes["a"].reads["User"]; n != 1 {
			t.Errorf("%d reads of the store, want 1", n)
		}
		second := w.nodes["b"].watchUser("y")
		expect(3, "a", "b")
		first.unwatch()
		again := w.nodes["a"].watchUser("x") // before the registration of the first is removed
		w.tickSeconds(1)
		expect(4, "a", "b")
		again.unwatch()
		w.tickSeconds(1)
		expect(5, "b")
		v := w.nodes["b"].allUserViews()[0]
		second.unwatch()
		w.nodes["b"].renewWatches([]*UserView{v}) // a renewal that was under way
		w.tickSeconds(1)
		expect(6)
	})
}

// TestUserWatchLost checks that a server registers itself again, and then reads the user, after a
// failover that it knows of, and also after another one, with its next renewal. It also does so
// after it has got a new id.
func TestUserWatchLost(t *testing.T) {
	all := slots.All()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, 0, "a", "b")
		n := w.nodes["a"]
		o := n.watchUser("x")
		generation := int64(0)
		for _, c := range []struct {
			name   string
			repair func()
		}{
			{"failover", func() { n.ResyncUsers(&all) }},
			{"unnoticed failover", func() { w.tickSeconds(int(testRenewal.Seconds()) + 1) }},
			{"new id", func() {
				n.mu.Lock()
				n.id = "a2"
				n.mu.Unlock()
				n.ResyncUsers(&all)
			}},
		} {
			w.loseWatch(n.id)
			generation++
			if got := w.bindSilently("phone", "b", generation); len(got) != 0 {
				t.Fatalf("%s: the watching servers are %v", c.name, got)
			}
			c.repair()
			w.tickSeconds(0)
			if !o.knows[""] {
				t.Errorf("%s: bob connected, and the watcher received no join", c.name)
			}
			generation++
			w.bind("phone", "", generation)
			w.tickSeconds(10)
			if o.knows[""] {
				t.Errorf("%s: bob is offline, and the watcher received no leave", c.name)
			}
		}
	})
}

// TestUserWatchFails checks that a view does not read the user without a registration.
func TestUserWatchFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, 0, "a", "b")
		n := w.nodes["a"]
		n.failCalls(1, true)
		if _, err := n.WatchUser(t.Context(), "bob"); err == nil {
			t.Fatal("the store failed, and the user is watched")
		}
		if n.reads["User"] != 0 {
			t.Error("the user was read")
		}
		o := n.watchUser("x")
		w.loseWatch("a")
		w.bindSilently("phone", "b", 1)
		n.failCalls(1, false)
		all := slots.All()
		n.ResyncUsers(&all)
		w.tickSeconds(2)
		if !o.knows[""] {
			t.Error("bob connected, and the watcher received no join")
		}
	})
}
