package sim

import "slices"

// pick draws one of several.
func pick[T any](w *world, from []T) T { return from[w.rng.IntN(len(from))] }

// one says yes once in n times.
func (w *world) one(n int) bool { return w.rng.IntN(n) == 0 }

// live are the brokers that run.
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

// step draws one step.
func (w *world) step() {
	var choices []choice
	kinds := 0
	add := func(weight int, possible bool, do func()) {
		if possible {
			choices = append(choices, choice{weight * w.swarm[kinds], do})
		}
		kinds++
	}
	turns, hops, up := w.turnsDue(), len(w.hops) > 0, len(w.live()) > 0
	add(30, len(w.callsDue()) > 0, w.stepCall)
	add(30, len(turns) > 0, func() { w.run(pick(w, turns)) })
	add(10, hops, w.stepHop)
	add(16, up, w.stepClient)
	add(9, up, w.drawPush)
	add(4, up, func() {
		n := pick(w, w.live())
		w.log("%s ticks", n.slot)
		n.tick()
	})
	add(1, !w.cleaning, w.stepJanitor)
	add(2, up && w.profile >= lossy, w.stepSweep)
	add(2, up && w.faulty(), func() {
		n := pick(w, w.live())
		w.log("%s beats", n.slot)
		n.startBeat()
	})
	add(2, w.faulty(), w.stepTrouble)
	add(1, !w.faulty(), w.rest)
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
}

// callsDue are the calls that something can happen to.
func (w *world) callsDue() []*call {
	return slices.DeleteFunc(w.parked(), func(c *call) bool {
		return c.stage == executed && c.node != nil && !c.node.up()
	})
}

func (w *world) stepCall() {
	due := w.callsDue()
	if fast := slices.DeleteFunc(slices.Clone(due), func(c *call) bool { return c.slow }); len(fast) > 0 && !w.one(12) {
		due = fast
	}
	c := pick(w, due)
	switch {
	case w.away && c.stage != between && w.rng.IntN(8) > 0:
		if !c.orphan && c.stage == waiting && (c.node == nil || c.node.up()) {
			w.fail(c, errLost)
		}
	case w.faulty() && !c.orphan && (c.node == nil || c.node.up()) && w.one(25):
		w.fail(c, errLost)
	case c.node != nil && c.node.mute && (c.op == "Beat" || c.op == "Join") && c.stage == waiting:
		w.fail(c, errLost)
	case c.stage == executed:
		w.reply(c)
	case w.one(3) || c.node != nil && !c.node.up():
		w.execute(c)
	default:
		w.express(c)
	}
}

func (w *world) stepHop() {
	i := w.rng.IntN(len(w.hops))
	h := w.hops[i]
	switch {
	case w.profile >= lossy && w.one(4):
		w.hops = slices.Delete(w.hops, i, i+1)
		w.miss(h, "lost")
	case w.one(8):
		w.log("repeat %v", h)
		w.hand(h)
	default:
		w.hops = slices.Delete(w.hops, i, i+1)
		w.hand(h)
	}
}

// hand delivers a hint.
func (w *world) hand(h hop) {
	for _, n := range w.nodes {
		if n.serverID() == h.to {
			if !n.up() {
				break
			}
			w.log("deliver %v", h)
			n.hint(h.Hint)
			w.settle()
			return
		}
	}
	w.miss(h, "finds nobody")
}

// miss is a hint that does not arrive. The link knows: its receiver sweeps.
func (w *world) miss(h hop, how string) {
	w.log("%s: %v", how, h)
	for _, n := range w.nodes {
		if n.serverID() == h.to {
			n.deaf = true
		}
	}
}

func (w *world) stepSweep() {
	for _, n := range w.live() {
		if n.deaf {
			w.log("%s sweeps", n.slot)
			n.sweep()
			return
		}
	}
}

func (w *world) stepJanitor() {
	w.log("the janitor goes over the channels")
	w.clean(func() { _, _ = w.janitor.QueuesRound(backgroundContext) })
}

// clean begins a round of the janitor; one at a time.
func (w *world) clean(round func()) {
	w.cleaning = true
	go func() {
		round()
		w.cleaning = false
	}()
	w.settle()
}

// stepClient has one client do something.
func (w *world) stepClient() {
	cl := w.clients[pick(w, w.names)]
	mine := w.connsOf(cl)
	if len(mine) == 0 || w.one(8) && len(mine) < 3 {
		// What a broker binds that has never joined, and then crashes, nobody cleans: /readyz keeps clients away.
		if n := pick(w, w.live()); n.joined.Load() && cl.mayDial(n) {
			cl.dial(n)
		}
		return
	}
	c := pick(w, mine)
	if !c.node.up() {
		if c.life != ended && w.one(4) {
			c.leave()
		}
		return
	}
	switch {
	case c.life == ended:
		c.notice()
	case c.jam != flowing:
		if w.one(3) {
			c.unjam()
		}
	case c.life == dialing:
		if w.one(4) {
			c.leave()
		}
	default:
		w.stepConn(c)
	}
}

// connsOf are the client's connections that somebody still believes in.
func (w *world) connsOf(cl *client) (mine []*conn) {
	for _, c := range w.conns {
		if c.client == cl && (c.life != ended || c.session != nil) {
			mine = append(mine, c)
		}
	}
	return mine
}

// stepConn has a client do something with an open connection.
func (w *world) stepConn(c *conn) {
	channel := pick(w, channelNames)
	switch w.rng.IntN(13) {
	case 0, 1, 2, 3, 4:
		if c.asking(channel) {
			return
		}
		if c.subs[channel] == nil {
			if !c.maySubscribe(channel) {
				return
			}
			c.subscribe(channel, c.client.resume(channel))
		} else if w.one(5) {
			c.unsubscribe(channel)
		}
	case 5, 6, 7, 8:
		if ids := w.model.client(c.client.name).between(c.client.ackedTo, c.inbox); len(ids) > 0 && !c.client.auto {
			c.ack(pick(w, ids))
		}
	case 9, 10:
		c.jam = jam(1 + w.rng.IntN(2))
		w.log("%v takes no more (%d)", c, c.jam)
	default:
		c.leave()
		if w.one(2) {
			c.notice()
		}
	}
}

// resume is the `after` of a subscription: where the client was, the very beginning, or none.
func (cl *client) resume(channel string) *int64 {
	at, known := cl.position[channel]
	switch {
	case known && !cl.w.one(6):
		return &at
	case cl.w.one(3):
		return new(int64)
	}
	return nil
}
