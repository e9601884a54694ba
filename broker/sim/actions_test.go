package sim

import (
	"slices"
	"time"
)

// pick draws one element of from.
func pick[T any](w *world, from []T) T { return from[w.rng.IntN(len(from))] }

// oneIn returns true once in n times.
func (w *world) oneIn(n int) bool { return w.rng.IntN(n) == 0 }

// live returns the brokers that are not frozen.
func (w *world) live() (up []*node) {
	for _, n := range w.nodes {
		if n.up() {
			up = append(up, n)
		}
	}
	return up
}

// choice is a kind of step that is possible now.
type choice struct {
	weight int
	do     func()
}

// step draws and runs one step.
func (w *world) step() {
	var choices []choice
	kinds := 0
	add := func(weight int, possible bool, do func()) {
		if possible {
			choices = append(choices, choice{weight * w.weights[kinds], do})
		}
		kinds++
	}
	runs, hasHints, up := w.dueRuns(), len(w.dueHints()) > 0, len(w.live()) > 0
	add(30, len(w.openCalls()) > 0, w.stepCall)
	add(30, len(runs) > 0, func() { w.runLoop(pick(w, runs)) })
	add(10, hasHints, w.stepHint)
	add(10, up, w.stepLink)
	add(16, up, w.stepClient)
	add(9, up, w.drawPush)
	add(4, up, func() {
		n := pick(w, w.live())
		w.log("%s ticks", n.machine)
		n.tick()
	})
	add(1, !w.cleaning, w.stepJanitor)
	add(2, up && w.profile >= lossy, w.stepSweep)
	add(2, up && w.faulty(), func() {
		n := pick(w, w.live())
		w.log("%s beats", n.machine)
		n.startBeat()
	})
	add(2, w.faulty(), w.stepFault)
	add(1, !w.faulty(), w.runAndCheck)
	add(4, up, w.drawErase)
	add(9, up && w.hasStates, w.drawUpdate)
	add(6, w.hasStates, func() {
		time.Sleep(time.Duration(1+w.rng.IntN(40)) * time.Millisecond)
		w.log("milliseconds pass")
		w.heartbeats()
	})
	add(1, w.hasStates && !w.cleaning, w.stepStatesRound)
	sum := 0
	for _, c := range choices {
		sum += c.weight
	}
	at := w.rng.IntN(sum)
	for _, c := range choices {
		if at -= c.weight; at < 0 {
			c.do()
			break
		}
	}
	w.settle()
	w.checkPushes()
	w.checkErasures()
}

// openCalls returns the calls that can be executed, answered or failed.
func (w *world) openCalls() []*call {
	return slices.DeleteFunc(w.parked(), func(c *call) bool {
		return c.stage == executed && c.node != nil && !c.node.up()
	})
}

// stepCall executes, answers or fails a call.
func (w *world) stepCall() {
	due := w.openCalls()
	if fast := slices.DeleteFunc(slices.Clone(due), func(c *call) bool { return c.slow }); len(fast) > 0 && !w.oneIn(12) {
		due = fast
	}
	c := pick(w, due)
	switch {
	case w.storeDown && c.stage != halfExecuted && w.rng.IntN(8) > 0:
		if !c.orphan && c.stage == waiting && (c.node == nil || c.node.up()) {
			w.fail(c, errLost)
		}
	case w.faulty() && !c.orphan && (c.node == nil || c.node.up()) && w.oneIn(25):
		w.fail(c, errLost)
	case c.node != nil && c.node.beatsLost && c.op == "Renew" && c.stage == waiting:
		w.fail(c, errLost)
	case c.stage == executed:
		w.answer(c)
	case w.oneIn(3) || c.node != nil && !c.node.up():
		w.execute(c)
	default:
		w.executeAndAnswer(c)
	}
}

// dueHints returns the indexes of the hints whose receivers run.
func (w *world) dueHints() (due []int) {
	for i, h := range w.hints {
		if h.to.up() {
			due = append(due, i)
		}
	}
	return due
}

// stepHint delivers or repeats a hint.
func (w *world) stepHint() {
	i := pick(w, w.dueHints())
	if w.oneIn(8) {
		w.log("repeat %v", w.hints[i])
		w.deliver(w.hints[i])
		return
	}
	w.deliverAt(i)
}

// deliverAt delivers a hint in the list, and removes it.
func (w *world) deliverAt(i int) {
	h := w.hints[i]
	w.hints = slices.Delete(w.hints, i, i+1)
	w.deliver(h)
}

// deliver delivers a hint.
func (w *world) deliver(h pendingHint) {
	w.log("deliver %v", h)
	h.to.member.Hint(h.Hint)
	w.settle()
}

// stepSweep runs a round of a server that looks whether hints were lost.
func (w *world) stepSweep() {
	n := pick(w, w.live())
	w.log("%s sweeps", n.machine)
	n.sweep()
}

// stepJanitor starts the janitor's round over the channels.
func (w *world) stepJanitor() {
	w.log("the janitor goes over the channels")
	w.startJanitor(func() { _, _ = w.janitor.QueuesRound(backgroundContext) })
}

// stepStatesRound starts the janitor's round over the states.
func (w *world) stepStatesRound() {
	w.log("the janitor goes over the states")
	w.startJanitor(func() { _, _ = w.janitor.StatesRound(backgroundContext) })
}

// startJanitor starts a round of the janitor. One round runs at a time, and none in a run that
// failed: the round before may not have ended there.
func (w *world) startJanitor(round func()) {
	if w.failed() {
		return
	}
	w.cleaning = true
	go func() {
		round()
		w.cleaning = false
	}()
	w.settle()
}

// stepClient lets a client do something.
func (w *world) stepClient() {
	cl := w.clients[pick(w, w.names)]
	conns := w.connections(cl)
	if len(conns) == 0 || w.oneIn(8) && len(conns) < 3 {
		// Clients avoid a broker that has not joined: if it crashed, no janitor would remove its
		// bindings. In production, /readyz keeps clients away from it.
		if n := pick(w, w.live()); n.member.Joined() && cl.mayDial(n) {
			cl.dial(n)
		}
		return
	}
	c := pick(w, conns)
	if !c.node.up() {
		if c.state != ended && w.oneIn(4) {
			c.leave()
		}
		return
	}
	switch {
	case c.state == ended:
		c.noticeEnd()
	case c.socket != flowing:
		if w.oneIn(3) {
			c.unblock()
		}
	case c.state == dialing:
		if w.oneIn(4) {
			c.leave()
		}
	default:
		w.stepConn(c)
	}
}

// connections returns the client's connections that are open on either side.
func (w *world) connections(cl *client) (conns []*conn) {
	for _, c := range w.conns {
		if c.client == cl && (c.state != ended || c.session != nil) {
			conns = append(conns, c)
		}
	}
	return conns
}

// stepConn lets a client do something on an open connection.
func (w *world) stepConn(c *conn) {
	channel := pick(w, channelNames)
	if w.hasStates && !w.oneIn(3) {
		c.stepState(channel)
		return
	}
	switch w.rng.IntN(19) {
	case 0, 1, 2, 3, 4:
		if c.hasRequest(channel) {
			return
		}
		if c.subs[channel] == nil {
			if !c.maySubscribe(channel) {
				return
			}
			c.subscribeAnd(channel, c.client.resumePosition(channel), !w.oneIn(3))
		} else if w.oneIn(5) {
			c.unsubscribe(channel)
		} else if w.oneIn(2) {
			c.watchPresence(channel)
		}
	case 5, 6, 7, 8:
		if ids := w.model.client(c.client.name).between(c.client.ackedTo, c.inbox); len(ids) > 0 && !c.client.auto {
			c.ack(pick(w, ids))
		}
	case 9, 10:
		c.socket = socketState(1 + w.rng.IntN(2))
		w.log("%v stops reading (%d)", c, c.socket)
	case 11, 12, 13, 14, 15, 16:
		c.stepUser()
	default:
		c.leave()
		if w.oneIn(2) {
			c.noticeEnd()
		}
	}
}

// resumePosition draws the `after` of a subscription: the client's position, 0 or none.
func (cl *client) resumePosition(channel string) *int64 {
	at, known := cl.position[channel]
	switch {
	case known && !cl.w.oneIn(6):
		return &at
	case cl.w.oneIn(3):
		return new(int64)
	}
	return nil
}
