package presence

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"switchboard/registry"
)

// TestRandomEvents lets clients join, leave, move and return on three servers, while hints are
// lost, the store fails and servers die. In the end every watcher must know the members. No watcher
// may receive the same event twice, except what a page has shown before the event.
func TestRandomEvents(t *testing.T) {
	for seed := range uint64(150) {
		for _, large := range []int{1000, 3} {
			t.Run(fmt.Sprintf("seed %d, large %d", seed, large), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { runRandom(t, seed, large) })
			})
		}
	}
}

func runRandom(t *testing.T, seed uint64, large int) {
	w := newWorld(t, seed, large, "a", "b", "c")
	names := []string{"a", "b", "c"}
	location := map[string]string{} // by client: its server
	generation := map[string]int64{}
	next := int64(0)
	watchers := []*testWatcher{w.nodes["a"].watch("x"), w.nodes["b"].watch("yy"), w.nodes["a"].watch("client-0")}
	for range 60 {
		n := w.nodes[names[w.intn(3)]]
		client := fmt.Sprint("client-", w.intn(6))
		switch w.intn(18) {
		case 0, 1, 2, 3, 4: // connect, or move
			if !w.live[n.id] {
				break
			}
			next++
			before, old := location[client], generation[client]
			n.join(client, fmt.Sprint("user-", w.intn(2)), next)
			location[client], generation[client] = n.id, next
			if before != "" {
				w.nodes[before].leave(client, old)
			}
		case 5, 6, 7: // disconnect
			if at := location[client]; at != "" {
				w.nodes[at].leave(client, generation[client])
				delete(location, client)
			}
		case 8:
			n.failCalls(1+w.intn(3), w.intn(2) == 0)
		case 9:
			w.loseHints(w.intn(2) == 0)
		case 10: // the lease ends, or comes back
			if n.id != "a" { // the watchers are on a
				if w.live[n.id] {
					delete(w.live, n.id)
				} else {
					w.live[n.id] = true
				}
				w.setLive()
			}
		case 11:
			n.Resync([]string{testChannel}, nil)
		case 12:
			w.delay()
		case 13:
			w.loseHints(false)
			for _, n := range w.nodes {
				n.failCalls(0, false)
			}
			w.settle()
			watchers[0].setBacklogged(false)
			watchers[0].expect(w.liveMembers())
		case 14:
			watchers = append(watchers, w.nodes["a"].watch(fmt.Sprint("client-", w.intn(6))))
		case 15, 16:
			watchers[w.intn(len(watchers))].setBacklogged(w.intn(2) == 0)
		case 17:
			watchers[w.intn(len(watchers))].readPage()
		}
	}
	w.loseHints(false)
	for _, n := range w.nodes {
		n.failCalls(0, false)
		w.live[n.id] = true
	}
	w.setLive()
	w.settle()
	members := w.liveMembers()
	for i, o := range watchers {
		o.setBacklogged(false)
		o.expect(members)
		if large == 3 && len(members) > 3 && i < 2 && o.count != len(members) { // a late watcher may not have received any event
			t.Errorf("%s received the count %d, want %d", o.name, o.count, len(members))
		}
	}
	if stored := w.stored(testChannel, names...); !slices.Equal(stored, members) {
		t.Errorf("the store has %v, want %v", stored, members)
	}
}

// TestLeaseEnds checks that the members of a server leave when its lease ends, once, and come back
// with it.
func TestLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, 0, "a", "b")
		w.nodes["b"].join("phone", "bob", 1)
		w.nodes["b"].join("pad", "bob", 1)
		w.nodes["a"].join("tv", "eve", 1)
		w.settle()
		o := w.nodes["a"].watch("x")
		o.expect([]string{"pad", "phone", "tv"})
		delete(w.live, "b")
		w.setLive()
		w.waitASecond()
		o.expect([]string{"tv"})
		w.nodes["b"].leave("pad", 1) // it was suspended and continues
		w.live["b"] = true
		w.setLive()
		w.settle()
		o.expect([]string{"phone", "tv"})
	})
}

// TestRestoredServer checks that members are shown whose server was missing in the store when the
// watchers read it, although the roster of that server has not changed.
func TestRestoredServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, 0, "a", "b")
		a, b := w.nodes["a"], w.nodes["b"]
		b.join("phone", "bob", 1)
		w.settle()
		o := a.watch("x")
		o.expect([]string{"phone"})
		roster, err := w.store.Roster(t.Context(), "b", testChannel)
		w.check(err)
		w.check(w.store.UnbindChannel(t.Context(), "b", testChannel)) // a failover
		a.Resync([]string{testChannel}, nil)
		w.settle()
		o.expect(nil)
		w.check(w.store.BindChannel(t.Context(), "b", testChannel))
		for _, o := range w.store.ChangePresence(t.Context(), "b", []registry.RosterChange{
			{Channel: testChannel, PresenceChange: registry.PresenceChange{Join: roster.Members}},
		}) {
			w.check(o.Err)
		}
		b.Resync([]string{testChannel}, []string{testChannel})
		w.settle()
		o.expect([]string{"phone"})
	})
}

// TestBacklog checks that a watcher whose socket was backed up receives a snapshot instead of the
// changes.
func TestBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, 0, "a")
		o := w.nodes["a"].watch("x")
		o.backlogged = true
		w.nodes["a"].join("phone", "bob", 1)
		w.nodes["a"].join("pad", "bob", 1)
		w.settle()
		o.expect(nil)
		o.backlogged = false
		done := make(chan struct{})
		o.sub.loop.Post(func() { o.sub.Resume(); close(done) })
		<-done
		o.expect([]string{"pad", "phone"})
		if o.count != 2 {
			t.Errorf("the count is %d, want 2", o.count)
		}
		w.nodes["a"].leave("pad", 1)
		w.settle()
		o.expect([]string{"phone"})
	})
}

// TestLastWatcherLeaves checks that the store no longer lists the server after its last watcher
// left.
func TestLastWatcherLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, 0, "a")
		watchingServers := func() []string { // a change returns them, even if it changes nothing
			nothing := registry.PresenceChange{Leave: []registry.Member{{Client: "unknown"}}}
			o := w.store.ChangePresence(t.Context(), "a", []registry.RosterChange{{Channel: testChannel, PresenceChange: nothing}})[0]
			w.check(o.Err)
			return o.Watchers
		}
		o := w.nodes["a"].watch("x")
		if got := watchingServers(); len(got) != 1 {
			t.Fatalf("the watching servers are %v", got)
		}
		done := make(chan struct{})
		o.sub.loop.Post(func() { o.sub.Close(); close(done) })
		<-done
		w.settle()
		if got := watchingServers(); len(got) != 0 {
			t.Errorf("the watching servers are still %v", got)
		}
		if views := w.nodes["a"].allViews(); len(views) != 0 {
			t.Errorf("%d views are left", len(views))
		}
		w.nodes["a"].watch("y").expect(nil)
	})
}

// TestHintsOutOfOrder checks that a client that joined and left is not a member when the hints
// arrive in the wrong order, or when only the hint of its join arrives and is late.
func TestHintsOutOfOrder(t *testing.T) {
	phone := []registry.Member{{Client: "phone", Generation: 1}}
	join := rosterUpdate{server: "b", prev: 0, version: 7, inline: true, change: registry.PresenceChange{Join: phone}}
	leave := rosterUpdate{server: "b", prev: 7, version: 0, inline: true, change: registry.PresenceChange{Leave: phone}}
	for name, hints := range map[string][]rosterUpdate{
		"twice, reversed": {leave, join, leave, join},
		"late":            {join},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 0, 0, "a", "b")
				o := w.nodes["a"].watch("x")
				for _, u := range hints {
					w.nodes["a"].apply(testChannel, u)
				}
				w.waitASecond()
				o.expect(nil)
				w.nodes["b"].join("pad", "bob", 2)
				w.waitASecond()
				o.expect([]string{"pad"})
			})
		})
	}
}

// TestNoOwnEvents checks coalesced events: they contain neither the watcher's own joins and leaves
// nor the changes from before its subscription.
func TestNoOwnEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, 1, "a")
		a := w.nodes["a"]
		for i, client := range []string{"tv", "pad", "phone"} {
			a.join(client, "bob", int64(i))
		}
		w.settle()
		before, phone := a.watch("x"), a.watch("phone")
		a.leave("phone", 2)
		a.leave("pad", 1)
		w.waitASecond()
		between := a.watch("y")
		between.expect([]string{"tv"})
		a.join("phone", "bob", 3)
		a.join("pad", "bob", 4)
		w.settle()
		for _, o := range []*testWatcher{before, phone, between} {
			o.expect([]string{"pad", "phone", "tv"})
		}
	})
}

// TestPageBetweenCoalescedChanges checks a watcher that reads a page between two changes of a
// client which come in one event. The client is then what it was before, but not what the page
// says.
func TestPageBetweenCoalescedChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, 1, "a")
		a := w.nodes["a"]
		a.join("tv", "bob", 1)
		a.join("pad", "bob", 2)
		w.settle()
		paging, other := a.watch("x"), a.watch("y")
		a.leave("tv", 1)
		w.waitASecond()        // without a tick, which would send the changes
		a.join("tv", "bob", 5) // the page has it again, so no watcher needs an event
		a.leave("pad", 2)
		a.join("phone", "bob", 3)
		w.waitASecond()
		paging.readPage()
		a.join("pad", "bob", 4)
		a.leave("phone", 3)
		w.settle()
		for _, o := range []*testWatcher{paging, other} {
			o.expect([]string{"pad", "tv"})
		}
		a.leave("pad", 4)
		w.settle()
		for _, o := range []*testWatcher{paging, other} {
			o.expect([]string{"tv"})
		}
	})
}
