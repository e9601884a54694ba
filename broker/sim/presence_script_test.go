package sim

import (
	"testing"
	"time"
)

// watched returns a world with a watcher on the first server and a member on the second one. The
// watcher knows all members.
func (w *world) watched() (watcher, member *conn) {
	for _, n := range w.nodes {
		n.startBeat()
		w.runUntilIdle()
	}
	watcher, member = w.clients["ann/c1"].dial(w.nodes[0]), w.clients["ben/c2"].dial(w.nodes[1])
	w.runUntilIdle()
	for _, c := range []*conn{watcher, member} {
		c.subscribe("news", nil)
		w.runUntilIdle()
	}
	for range 2 { // watch and read
		watcher.watchPresence("news")
		w.runUntilIdle()
	}
	w.checkAllRosters()
	return watcher, member
}

// TestNewIDKeepsPresence checks that watchers see the clients of a server that was declared dead
// and continues under a new id.
func TestNewIDKeepsPresence(t *testing.T) {
	playScript(t, func(w *world) {
		watcher, member := w.watched()
		for range 3 { // only the watcher's server beats
			for range 6 {
				time.Sleep(2 * time.Second)
				w.nodes[0].startBeat()
				w.runUntilIdle()
			}
			w.startJanitor(func() { _, _ = w.janitor.ServersRound(backgroundContext) })
			w.runUntilIdle()
			time.Sleep(31 * time.Second)
		}
		w.nodes[0].startBeat()
		w.runUntilIdle()
		if present, known := watcher.subs["news"].roster.present["ben/c2"]; present || !known {
			w.violate("the server of %v is dead, but the watcher knows %v", member, present)
		}
		for range 2 {
			w.nodes[1].startBeat()
			w.runUntilIdle()
			w.nodes[0].startBeat()
			w.runUntilIdle()
		}
		w.checkAllRosters()
	})
}

// TestLostHintOfALeave checks that a watcher sees a leave whose hint was lost, after the sweep.
func TestLostHintOfALeave(t *testing.T) {
	playScript(t, func(w *world) {
		w.profile = lossy
		_, member := w.watched()
		member.unsubscribe("news")
		for len(w.busyLinks()) == 0 && !w.failed() {
			w.settleOne()
		}
		for _, k := range w.busyLinks() {
			k.Batches(false) // lost
		}
		w.sweepAll()
		w.checkAllRosters()
	})
}

// settleOne runs one loop, or one call of the store.
func (w *world) settleOne() {
	if runs := w.dueRuns(); len(runs) > 0 {
		w.runLoop(runs[0])
	} else if calls := w.openCalls(); len(calls) > 0 {
		w.executeAndAnswer(calls[0])
	} else {
		w.violate("nothing is in progress")
	}
}
