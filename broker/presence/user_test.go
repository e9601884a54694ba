package presence

import (
	"testing"
	"testing/synctest"

	"switchboard/registry"
)

// watchUser subscribes a watcher to the user bob.
func (n *node) watchUser(name string) *testWatcher { return n.watchUserNamed(name, "bob") }

// watchUserNamed subscribes a watcher to a user.
func (n *node) watchUserNamed(name, user string) *testWatcher {
	n.w.t.Helper()
	v, err := n.WatchUser(n.w.t.Context(), user)
	n.w.check(err)
	o := &testWatcher{t: n.w.t, name: name, knows: map[string]bool{}, count: -1}
	l := n.loops[0]
	done := make(chan struct{})
	l.Post(func() {
		o.sub = v.Subscribe(l, o)
		o.sub.Start()
		close(done)
	})
	<-done
	return o
}

// bind stores the server that bob's client is connected to; no server means that it disconnected.
func (w *world) bind(client, server string, generation int64) {
	w.t.Helper()
	for _, id := range w.bindSilently(client, server, generation) {
		for _, n := range w.nodes {
			if n.id == id {
				n.UserChanged("bob")
			}
		}
	}
}

// bindSilently is bind without hints. It returns the servers that watch bob.
func (w *world) bindSilently(client, server string, generation int64) []string {
	w.t.Helper()
	list := []registry.UserBinding{{User: "bob", Binding: registry.Binding{Client: client, Server: server, Generation: generation}}}
	w.check(w.store.BindUsers(w.t.Context(), list)[0])
	return list[0].Watchers
}

// tickSeconds ticks n times, a second apart, and lets one more second pass.
func (w *world) tickSeconds(n int) {
	for range n {
		w.waitASecond()
		for _, n := range w.nodes {
			n.Tick()
		}
	}
	w.waitASecond()
}

// TestUser checks that the first client on any server makes the user online, and that the user goes
// offline when the last client has been away for the grace period.
func TestUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, 0, "a", "b")
		o := w.nodes["a"].watchUser("x")
		expectOnline := func(want bool) {
			t.Helper()
			if o.knows[""] != want { // the event names only the user
				t.Fatalf("the watcher sees bob online: %v, want %v", o.knows[""], want)
			}
		}
		expectOnline(false)
		w.bind("phone", "b", 1)
		w.tickSeconds(0)
		expectOnline(true)
		w.bind("tv", "a", 2)
		w.bind("phone", "", 3)
		w.tickSeconds(10)
		expectOnline(true)
		w.bind("tv", "", 4)
		w.tickSeconds(3)
		expectOnline(true)
		w.bind("tv", "b", 5) // a reconnect causes no event
		w.tickSeconds(10)
		expectOnline(true)
		delete(w.live, "b")
		w.setLive()
		w.tickSeconds(3)
		expectOnline(true)
		w.tickSeconds(4)
		expectOnline(false)
		w.live["b"] = true
		w.setLive()
		w.tickSeconds(0)
		expectOnline(true)
		late := w.nodes["b"].watchUser("y")
		if !late.knows[""] {
			t.Error("a new watcher of an online user receives no join")
		}
	})
}

// unwatch closes the watcher's subscription.
func (o *testWatcher) unwatch() {
	done := make(chan struct{})
	o.sub.loop.Post(func() { o.sub.Close(); close(done) })
	<-done
}

// TestInitialReads checks that a new view detects changes by itself, before servers of former
// versions know that it needs hints.
func TestInitialReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, 0, "a", "b")
		w.hasFormer = true
		o := w.nodes["a"].watchUser("x")
		w.bindSilently("phone", "b", 1)
		w.tickSeconds(2)
		if !o.knows[""] {
			t.Error("bob connected, and the watcher received no join")
		}
		if n := w.nodes["a"].WatchedUsers(); n != 1 {
			t.Errorf("%d users are watched", n)
		}
		o.unwatch()
		if n := w.nodes["a"].WatchedUsers(); n != 0 {
			t.Errorf("%d users are watched without a watcher", n)
		}
	})
}

// TestOfflineUserIsNotPolled checks that the view reads the store no more after it published that
// the user is offline, until a hint arrives.
func TestOfflineUserIsNotPolled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, 0, "a", "b")
		o := w.nodes["a"].watchUser("x")
		w.bind("phone", "b", 1)
		w.tickSeconds(initialReads + 1)
		w.bind("phone", "", 2)
		w.tickSeconds(10)
		if o.knows[""] {
			t.Fatal("bob is still online")
		}
		before := w.nodes["a"].reads["User"]
		w.tickSeconds(10)
		if n := w.nodes["a"].reads["User"] - before; n != 0 {
			t.Errorf("%d reads of the store in ten seconds, want none", n)
		}
		w.bind("phone", "b", 3)
		w.tickSeconds(0)
		if !o.knows[""] {
			t.Error("bob connected again, and the watcher received no join")
		}
	})
}
