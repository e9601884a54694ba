package presence

import (
	"testing"
	"testing/synctest"

	"switchboard/registry"
)

// follow has a connection follow bob.
func (n *node) watchUser(name string) *testWatcher {
	n.w.t.Helper()
	v, err := n.WatchUser(n.w.t.Context(), "bob")
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

// bind says where bob's client is; no server means that it said goodbye.
func (w *world) bind(client, server string, generation int64) {
	w.t.Helper()
	w.check(w.store.BindUsers(w.t.Context(), []registry.UserBinding{{User: "bob", Binding: registry.Binding{Client: client, Server: server, Generation: generation}}})[0])
	for _, n := range w.nodes {
		n.UserChanged("bob")
	}
}

// seconds lets n of them pass.
func (w *world) waitSeconds(n int) {
	for range n {
		w.waitASecond()
		for _, n := range w.nodes {
			n.Tick()
		}
	}
	w.waitASecond()
}

// TestUser: the first client anywhere makes the user online, the last one's end offline when the
// grace is over.
func TestUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, 0, "a", "b")
		o := w.nodes["a"].watchUser("x")
		online := func(want bool) {
			t.Helper()
			if o.knows[""] != want { // the event names the user only
				t.Fatalf("told that bob is online: %v, want %v", o.knows[""], want)
			}
		}
		online(false)
		w.bind("phone", "b", 1)
		w.waitSeconds(0)
		online(true)
		w.bind("tv", "a", 2)
		w.bind("phone", "", 3)
		w.waitSeconds(10)
		online(true)
		w.bind("tv", "", 4)
		w.waitSeconds(3)
		online(true)
		w.bind("tv", "b", 5) // a reconnect is no event
		w.waitSeconds(10)
		online(true)
		delete(w.live, "b")
		w.setLive()
		w.waitSeconds(3)
		online(true)
		w.waitSeconds(4)
		online(false)
		w.live["b"] = true
		w.setLive()
		w.waitSeconds(0)
		online(true)
		late := w.nodes["b"].watchUser("y")
		if !late.knows[""] {
			t.Error("who begins to follow an online user is not told so")
		}
	})
}

// TestYouth: a new view finds out by itself what happens before the others know that somebody
// follows.
func TestYouth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, 0, "a", "b")
		o := w.nodes["a"].watchUser("x")
		w.check(w.store.BindUsers(t.Context(), []registry.UserBinding{{User: "bob", Binding: registry.Binding{Client: "phone", Server: "b", Generation: 1}}})[0])
		w.waitSeconds(2)
		if !o.knows[""] {
			t.Error("bob came, and nobody was told")
		}
		if n := w.nodes["a"].WatchedUsers(); n != 1 {
			t.Errorf("%d users are followed", n)
		}
		done := make(chan struct{})
		o.sub.loop.Post(func() { o.sub.Close(); close(done) })
		<-done
		if n := w.nodes["a"].WatchedUsers(); n != 0 {
			t.Errorf("%d users are followed when nobody does", n)
		}
	})
}
