package presence

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"switchboard/registry"
)

// TestRandom has clients come, go, move and return on three servers, while hints are lost, the
// store fails and servers die: in the end every watcher knows the truth, and was never told twice
// the same.
func TestRandom(t *testing.T) {
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
	place := map[string]string{} // where a client is
	generation := map[string]int64{}
	next := int64(0)
	watchers := []*testWatcher{w.nodes["a"].watch("x"), w.nodes["b"].watch("yy"), w.nodes["a"].watch("client-0")}
	for range 60 {
		n := w.nodes[names[w.intn(3)]]
		client := fmt.Sprint("client-", w.intn(6))
		switch w.intn(17) {
		case 0, 1, 2, 3, 4: // comes, or moves
			if !w.live[n.id] {
				break
			}
			next++
			before, old := place[client], generation[client]
			n.join(client, fmt.Sprint("user-", w.intn(2)), next)
			place[client], generation[client] = n.id, next
			if before != "" {
				w.nodes[before].leave(client, old)
			}
		case 5, 6, 7: // goes
			if at := place[client]; at != "" {
				w.nodes[at].leave(client, generation[client])
				delete(place, client)
			}
		case 8:
			n.failCalls(1+w.intn(3), w.intn(2) == 0)
		case 9:
			w.loseHints(w.intn(2) == 0)
		case 10: // the lease runs out, or comes back
			if n.id != "a" { // whose watcher would not be told
				if w.live[n.id] {
					delete(w.live, n.id)
				} else {
					w.live[n.id] = true
				}
				w.setLive()
			}
		case 11:
			n.Resync([]string{testChannel})
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
		}
	}
	w.loseHints(false)
	for _, n := range w.nodes {
		n.failCalls(0, false)
		w.live[n.id] = true
	}
	w.setLive()
	w.settle()
	truth := w.liveMembers()
	for i, o := range watchers {
		o.setBacklogged(false)
		o.expect(truth)
		if large == 3 && len(truth) > 3 && i < 2 && o.count != len(truth) { // of a late one's coming nothing may have happened
			t.Errorf("%s was told of %d clients, there are %d", o.name, o.count, len(truth))
		}
	}
	var stored []string
	for _, id := range names {
		r, err := w.store.Roster(t.Context(), id, testChannel)
		w.check(err)
		for _, m := range r.Members {
			stored = append(stored, m.Client)
		}
	}
	slices.Sort(stored)
	if fmt.Sprint(slices.Compact(stored)) != fmt.Sprint(truth) {
		t.Errorf("the store has %v; there are %v", stored, truth)
	}
}

// TestDeath: what a server had is gone for all with its lease, once, and comes back with it.
func TestDeath(t *testing.T) {
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
		w.nodes["b"].leave("pad", 1) // it was suspended, and goes on
		w.live["b"] = true
		w.setLive()
		w.settle()
		o.expect([]string{"phone", "tv"})
	})
}

// TestBacklog: who was backed up is told who is there, instead of what has changed.
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
			t.Errorf("told of %d clients", o.count)
		}
		w.nodes["a"].leave("pad", 1)
		w.settle()
		o.expect([]string{"phone"})
	})
}

// TestNobodyFollows: the last watcher's end takes the server's name out of the store.
func TestNobodyFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, 0, "a")
		watching := func() []string {
			nothing := registry.PresenceChange{Leave: []registry.Member{{Client: "nobody"}}}
			o := w.store.ChangePresence(t.Context(), "a", []registry.RosterChange{{Channel: testChannel, PresenceChange: nothing}})[0]
			w.check(o.Err)
			return o.Watchers
		}
		o := w.nodes["a"].watch("x")
		if got := watching(); len(got) != 1 {
			t.Fatalf("watching are %v", got)
		}
		done := make(chan struct{})
		o.sub.loop.Post(func() { o.sub.Close(); close(done) })
		<-done
		w.settle()
		if got := watching(); len(got) != 0 {
			t.Errorf("still watching are %v", got)
		}
		if views := w.nodes["a"].allViews(); len(views) != 0 {
			t.Errorf("%d views are left", len(views))
		}
		w.nodes["a"].watch("y").expect(nil)
	})
}

// TestBackToFront: somebody who came and left is not there because the hints of it are mixed up,
// nor because one came before the roster was read and the other did not come at all.
func TestBackToFront(t *testing.T) {
	phone := []registry.Member{{Client: "phone", Generation: 1}}
	came := rosterUpdate{server: "b", prev: 0, version: 7, inline: true, change: registry.PresenceChange{Join: phone}}
	went := rosterUpdate{server: "b", prev: 7, version: 0, inline: true, change: registry.PresenceChange{Leave: phone}}
	for name, hints := range map[string][]rosterUpdate{
		"twice, back to front": {went, came, went, came},
		"late":                 {came},
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

// TestNotOfItself: a client of a large channel is not told of itself, nor of what it knew when it
// subscribed, in the middle of what is told together.
func TestNotOfItself(t *testing.T) {
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
