package presence

import (
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
)

// TestRandomHere lets clients show values while they join, leave and move on three servers, hints
// are lost, the store fails, sockets are backed up and servers die. In the end every watcher and
// every page must have the newest values.
func TestRandomHere(t *testing.T) {
	for seed := range uint64(150) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runRandomHere(t, seed) })
		})
	}
}

func runRandomHere(t *testing.T, seed uint64) {
	w := newWorld(t, seed, 1000, "a", "b", "c")
	names := []string{"a", "b", "c"}
	location := map[string]string{} // by client: its server
	generation := map[string]int64{}
	want := map[string]string{} // by client: its value
	next := int64(1)
	watchers := []*testWatcher{w.nodes["a"].watchAsMember("x"), w.nodes["a"].watchAsMember("yy")}
	for i := range 80 {
		n := w.nodes[names[w.intn(3)]]
		client := fmt.Sprint("client-", w.intn(4))
		at := w.nodes[location[client]]
		switch w.intn(18) {
		case 0, 1, 2: // connect, or move
			if !w.live[n.id] {
				break
			}
			next++
			old := generation[client]
			n.join(client, fmt.Sprint("user-", w.intn(2)), next)
			location[client], generation[client] = n.id, next
			delete(want, client)
			if at != nil {
				at.mustShow(client, old, "late") // the old connection has not ended yet
				at.leave(client, old)
			}
		case 3: // disconnect
			if at != nil {
				at.leave(client, generation[client])
				delete(location, client)
				delete(want, client)
			}
		case 4, 5, 6, 7, 8, 9:
			if at != nil {
				want[client] = fmt.Sprint("value ", i)
				at.mustShow(client, generation[client], want[client])
			}
		case 10:
			if at != nil {
				delete(want, client)
				at.mustShow(client, generation[client], "")
			}
		case 11:
			n.failCalls(1+w.intn(3), w.intn(2) == 0)
		case 12:
			w.loseHints(w.intn(2) == 0)
		case 13: // the lease ends, or comes back
			if n.id != "a" { // the watchers are on a
				if w.live[n.id] {
					delete(w.live, n.id)
				} else {
					w.live[n.id] = true
				}
				w.setLive()
			}
		case 14:
			w.runFor(w.intn(20))
		case 15:
			w.delay()
		case 16, 17:
			watchers[w.intn(len(watchers))].setBacklogged(w.intn(2) == 0)
		}
	}
	w.loseHints(false)
	for _, n := range w.nodes {
		n.failCalls(0, false)
		w.live[n.id] = true
	}
	w.setLive()
	late := w.nodes["a"].watch("late")
	late.loadPage()
	w.runFor(2*hereResend + 1)
	for _, o := range append(watchers, late) {
		o.setBacklogged(false)
		o.expectValues("in the end", want)
	}
	for _, n := range w.nodes {
		if got := n.pageValues(); !maps.Equal(got, want) && len(n.listMembers("")) > 0 {
			t.Errorf("a page of %s has the values %v, want %v", n.id, got, want)
		}
	}
}
