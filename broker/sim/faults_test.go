package sim

import (
	"context"
	"slices"
	"time"

	"switchboard/broker/member"
)

// callTimeout is the timeout of a store call, in the broker and the backend.
const callTimeout = 5 * time.Second

var backgroundContext = context.Background()

// stepFault draws a fault.
func (w *world) stepFault() {
	switch k := w.rng.IntN(12); {
	case w.hasStates && w.oneIn(6):
		w.clockAhead += time.Duration(w.rng.IntN(3000)) * time.Millisecond
		w.log("the queue's clock is %v ahead", w.clockAhead)
	case k < 1 && w.oneIn(2):
		w.failOver(w.rng.IntN(masters), func() bool { return w.oneIn(2) })
	case w.oneIn(6):
		user := pick(w, watchedUsers)
		w.log("the store has forgotten who watches %s", user)
		w.loseWatches(func(lost string) bool { return lost == user })
	case k < 2:
		w.storeDown = !w.storeDown
		w.log("the store is down: %v", w.storeDown)
	case k >= 8 && k < 10:
		w.endOrStart()
	case k < 5 || w.profile < harsh:
		w.advance(1 + w.rng.IntN(3))
	case k < 7:
		w.crash()
	case k < 8:
		w.freeze()
	default:
		w.declareRunningDead()
	}
}

// crash ends a broker, or starts one on a machine without a broker.
func (w *world) crash() {
	machine := pick(w, w.machines)
	if n := w.node(machine); n != nil {
		w.log("%s crashes", machine)
		n.crash()
		return
	}
	w.boot(machine)
}

// endOrStart ends a broker as planned, while other things happen, or starts one on a machine
// without a broker.
func (w *world) endOrStart() {
	machine := pick(w, w.machines)
	switch n := w.node(machine); {
	case n == nil:
		w.boot(machine)
	case n.up() && len(w.live()) > 1 && !w.storeDown:
		w.anyEnded = true
		w.endAsPlanned(n, w.stepMeanwhile)
	}
}

// stepMeanwhile is a step while a broker ends. Clients of the broker may be back at others, or call
// again. No backend calls it: its ports close before its last hints.
func (w *world) stepMeanwhile() {
	runs := w.dueRuns()
	switch k := w.rng.IntN(5); {
	case k == 0 && len(w.openCalls()) > 0:
		w.stepCall()
	case k == 1 && len(runs) > 0:
		w.runLoop(pick(w, runs))
	case k == 2 && len(w.dueHints()) > 0:
		w.stepHint()
	case k == 3:
		w.stepLink()
	default:
		w.stepClient()
	}
	w.settle()
	w.checkPushes()
	w.checkErasures()
}

// endAsPlanned ends a broker as broker.Run does, and returns whether it has said goodbye. If
// meanwhile is not nil, it is called between two steps of the broker.
func (w *world) endAsPlanned(n *node, meanwhile func()) (goodbye bool) {
	w.log("%s ends as planned", n.machine)
	w.settleOrphans()
	for w.stepNode(n) { // the calls of the backend, for which the ports wait
	}
	done := false
	go func() {
		n.member.End(backgroundContext, member.Ending{Drain: time.Second, Unbind: time.Second, Wait: n.pool.Wait})
		n.member.Wait()
		n.member.Goodbye(n.pool.Wait)
		n.member.Leave()
		done = true
	}()
	for w.settle(); !done && !w.failed(); w.settle() {
		if meanwhile != nil && w.oneIn(3) {
			meanwhile()
			continue
		}
		if w.stepNode(n) {
			continue
		}
		select {
		case do := <-n.forDriver:
			do()
		default:
			w.violate("%s does not end", n.machine)
		}
	}
	if !w.failed() {
		n.crash()
	}
	return n.saidGoodbye
}

// stepNode runs a loop of a broker, or one of its calls. It returns false if there is none.
func (w *world) stepNode(n *node) bool {
	own := slices.DeleteFunc(w.openCalls(), func(c *call) bool { return c.node != n || c.orphan })
	runs := slices.DeleteFunc(w.dueRuns(), func(r loopRun) bool { return r.node != n })
	switch {
	case w.failed() || len(own)+len(runs) == 0:
		return false
	case len(runs) > 0:
		w.runLoop(runs[0])
	default:
		w.executeAndAnswer(own[0])
	}
	return true
}

// freeze stops a broker for a while, or lets a frozen one continue.
func (w *world) freeze() {
	if n := w.node(pick(w, w.machines)); n != nil {
		n.frozen = !n.frozen
		w.log("%s is frozen: %v", n.machine, n.frozen)
		w.settle()
	}
}

// advance lets seconds pass. All brokers tick and beat, and calls reach their timeouts.
func (w *world) advance(seconds int) {
	for range seconds {
		w.settleOrphans()
		w.sleepWithHeartbeats(time.Second)
		w.log("a second passes")
		even := time.Since(epoch)/time.Second%2 == 0
		for _, n := range w.live() {
			n.tick()
			if even && !n.beatsLost {
				n.startBeat()
			}
		}
		w.failExpired()
		w.runLeaseCalls()
	}
}

// sleepWithHeartbeats lets time pass, in which links between running brokers stay in use.
func (w *world) sleepWithHeartbeats(d time.Duration) {
	const every = 500 * time.Millisecond
	for range d / every {
		time.Sleep(every)
		w.openLinks()
		w.heartbeats()
	}
}

// leaseCalls are the functions of a beat that call the store.
var leaseCalls = []string{"renewLease", "readListed", "readLeases"}

// runLeaseCalls executes the calls that keep a lease, if they reach the store.
func (w *world) runLeaseCalls() {
	for again := true; again && !w.failed(); {
		again = false
		for _, c := range w.openCalls() {
			if c.node == nil || w.storeDown || c.node.beatsLost || !c.node.up() || !slices.Contains(leaseCalls, c.function) {
				continue
			}
			w.executeAndAnswer(c)
			again = true
			break
		}
	}
}

// declareRunningDead freezes a broker or loses its beats until the janitor declares it dead. When
// the broker continues, it does not know yet that it was declared dead.
func (w *world) declareRunningDead() {
	up := w.live()
	if len(up) < 2 || w.cleaning {
		return
	}
	n := pick(w, up)
	if w.oneIn(2) {
		n.frozen = true
	} else {
		n.beatsLost = true
	}
	w.log("%s is cut off; frozen: %v", n.machine, n.frozen)
	w.storeDown = false
	w.advance(11)
	for range 2 + w.rng.IntN(2) {
		w.log("the janitor looks at the servers")
		w.startJanitor(func() { _, _ = w.janitor.ServersRound(backgroundContext) })
		for w.cleaning && !w.failed() {
			w.stepWhileJanitorRuns()
		}
		w.advance(1)
	}
	n.beatsLost = false
	if w.oneIn(2) {
		n.frozen = false
	}
	w.log("%s is connected again; frozen: %v", n.machine, n.frozen)
	w.settle()
}

// stepWhileJanitorRuns is a step during a janitor's round. Two of three steps are the janitor's.
func (w *world) stepWhileJanitorRuns() {
	var own []*call
	for _, c := range w.parked() {
		if c.node == nil {
			own = append(own, c)
		}
	}
	runs := w.dueRuns()
	switch {
	case len(own) > 0 && !w.oneIn(3):
		w.executeAndAnswer(pick(w, own))
	case len(runs) > 0 && w.oneIn(2):
		w.runLoop(pick(w, runs))
	case len(w.openCalls()) > 0:
		w.stepCall()
	}
	w.checkPushes()
	w.checkErasures()
}

// probe is the janitor's probe: it reports whether the server answers on the host.
func (w *world) probe(_ context.Context, host, server string) bool {
	n := w.node(host)
	return n != nil && n.up() && !n.beatsLost && n.serverID() == server
}
