package sim

import (
	"context"
	"time"
)

// callTime is the time limit of a call to the store, in broker and backend.
const callTime = 5 * time.Second

var backgroundContext = context.Background()

// stepTrouble draws one of the things that a run with trouble has.
func (w *world) stepTrouble() {
	switch k := w.rng.IntN(12); {
	case k < 2:
		w.away = !w.away
		w.log("the store is away: %v", w.away)
	case k < 5 || w.profile < harsh:
		w.elapse(1 + w.rng.IntN(3))
	case k < 7:
		w.crash()
	case k < 8:
		w.freeze()
	default:
		w.buryAlive()
	}
}

// crash ends a broker, or starts one on a machine that has none.
func (w *world) crash() {
	slot := pick(w, w.slots)
	if n := w.node(slot); n != nil {
		w.log("%s crashes", slot)
		n.crash()
		return
	}
	w.boot(slot)
}

// freeze stops a broker for a while, or lets a frozen one go on.
func (w *world) freeze() {
	if n := w.node(pick(w, w.slots)); n != nil {
		n.paused = !n.paused
		w.log("%s is frozen: %v", n.slot, n.paused)
		w.settle()
	}
}

// elapse lets seconds pass: everyone ticks and beats, and calls run into their time limits.
func (w *world) elapse(seconds int) {
	for range seconds {
		w.resolve()
		time.Sleep(time.Second)
		w.log("a second passes")
		even := time.Since(epoch)/time.Second%2 == 0
		for _, n := range w.live() {
			n.tick()
			if even && !n.mute {
				n.startBeat()
			}
		}
		w.expire()
		w.serve()
	}
}

// serve lets the calls that keep a lease go through, where the network does.
func (w *world) serve() {
	for again := true; again && !w.stopped(); {
		again = false
		for _, c := range w.callsDue() {
			if c.node == nil || w.away || c.node.mute || !c.node.up() || c.from != "renew" && c.from != "beat" {
				continue
			}
			w.express(c)
			again = true
			break
		}
	}
}

// buryAlive has a broker that is frozen, or does not reach the store with its beats, declared dead. It goes
// on later and does not know.
func (w *world) buryAlive() {
	up := w.live()
	if len(up) < 2 || w.cleaning {
		return
	}
	n := pick(w, up)
	if w.one(2) {
		n.paused = true
	} else {
		n.mute = true
	}
	w.log("%s is cut off; frozen: %v", n.slot, n.paused)
	w.away = false
	w.elapse(11)
	for range 2 + w.rng.IntN(2) {
		w.log("the janitor looks at the servers")
		w.clean(func() { _, _ = w.janitor.ServersRound(backgroundContext) })
		for w.cleaning && !w.stopped() {
			w.stepRound()
		}
		w.elapse(1)
	}
	n.mute = false
	if w.one(2) {
		n.paused = false
	}
	w.log("%s is connected again; frozen: %v", n.slot, n.paused)
	w.settle()
}

// stepRound is a step while the janitor works: two of three are the janitor's.
func (w *world) stepRound() {
	var own []*call
	for _, c := range w.parked() {
		if c.node == nil {
			own = append(own, c)
		}
	}
	turns := w.turnsDue()
	switch {
	case len(own) > 0 && !w.one(3):
		w.express(pick(w, own))
	case len(turns) > 0 && w.one(2):
		w.run(pick(w, turns))
	case len(w.callsDue()) > 0:
		w.stepCall()
	}
	w.checkPushes()
}

// answers is the janitor's probe.
func (w *world) answers(_ context.Context, host, server string) bool {
	n := w.node(host)
	return n != nil && n.up() && !n.mute && n.serverID() == server
}
