package sim

import (
	"context"
	"slices"
	"time"

	"switchboard/internal/wire"
)

// most steps that a healed world takes to come to rest.
const mostSteps = 20_000

// flow lets everything that is under way arrive, in an order that is drawn, and says whether it came to rest.
func (w *world) flow() {
	for range mostSteps {
		turns, calls := w.turnsDue(), w.callsDue()
		n := len(turns) + len(calls) + len(w.hops)
		switch {
		case w.stopped():
			return
		case n == 0:
			w.checkPushes()
			return
		}
		switch i := w.rng.IntN(n); {
		case i < len(turns):
			w.run(turns[i])
		case i < len(turns)+len(calls):
			w.express(calls[i-len(turns)])
		default:
			i -= len(turns) + len(calls)
			h := w.hops[i]
			w.hops = slices.Delete(w.hops, i, i+1)
			w.hand(h)
		}
	}
	w.violate("the world does not come to rest")
}

// heal ends all trouble.
func (w *world) heal() {
	w.log("all is healed")
	w.healing, w.away = true, false
	w.resolve()
	for _, slot := range w.slots {
		if w.node(slot) == nil {
			w.boot(slot)
		}
	}
	for _, n := range w.nodes {
		n.paused, n.mute = false, false
	}
	w.rest()
	if w.faulty() {
		for range refreshEvery/time.Second + 1 { // as long as it takes to renew every binding
			w.pass()
		}
	}
}

// rest lets everything arrive, without a tick. In calm and lossy runs nothing may be missing then.
func (w *world) rest() {
	w.log("all comes to rest")
	for _, c := range w.conns {
		if c.jam != flowing && c.life != ended && c.node.up() {
			c.unjam()
		}
	}
	w.settle()
	w.flow()
	w.sweepDeaf()
	if !w.faulty() {
		w.checkComplete()
	}
}

// sweepDeaf has those sweep that lost a hint. To the others everything has to come without.
func (w *world) sweepDeaf() {
	for _, n := range w.nodes {
		if n.deaf {
			w.log("%s sweeps", n.slot)
			n.sweep()
		}
	}
	w.flow()
}

// pass is two seconds in which all goes well.
func (w *world) pass() {
	time.Sleep(2 * time.Second)
	w.log("two seconds pass")
	for _, n := range w.nodes {
		n.tick()
		n.startBeat()
	}
	w.flow()
}

// finish is the end of a run: everything arrives, and then nobody is left.
func (w *world) finish() {
	steps := []func(){w.heal, w.checkComplete, w.pushAll, w.checkComplete}
	if w.seed%3 > 0 { // else everyone leaves as it is, and those who were refused do not come back
		steps = append(steps, w.reunite, w.checkComplete, w.checkReceived)
	}
	steps = append(steps, w.disperse, w.checkNobody)
	for _, step := range steps {
		if step(); w.stopped() {
			return
		}
	}
}

// checkComplete: whoever is connected has everything, and is connected once.
func (w *world) checkComplete() {
	for _, name := range w.names {
		bound := w.model.bound[name]
		if len(bound) > 0 && !slices.ContainsFunc(bound, func(c *conn) bool { return c.reason != wire.CloseSuperseded }) {
			w.violate("%v are all closed as superseded, and were bound last", bound)
		}
	}
	owners := map[string]*conn{}
	for _, c := range w.conns {
		if c.session == nil {
			continue
		}
		name := c.client.name
		if c.life == ended { // the broker has not noticed yet, or has found out that it is stale
			continue
		}
		if c.life == dialing {
			w.violate("%v is not connected", c)
			return
		}
		if other := owners[name]; other != nil {
			w.violate("%v and %v are both connected", c, other)
		}
		owners[name] = c
		if r := w.model.look(about{client: name}); r.Server != c.node.serverID() {
			w.violate("%v is connected, but the store says that %s is at %q", c, name, r.Server)
		} else if c.client.user != "" && r.entry.Server != r.Server {
			w.violate("%v is connected, but the store says that the user's %s is at %q", c, name, r.entry.Server)
		}
		for channel, s := range c.subs {
			if last := w.model.channel(channel).last(); s.cursor != last {
				w.violate("%v has %s up to %d, and there is %d", c, channel, s.cursor, last)
			}
		}
		if held := w.model.client(name).held; len(held) > 0 && c.inbox < held[len(held)-1] {
			w.violate("%v has its queue up to %d, and there is %d", c, c.inbox, held[len(held)-1])
		}
	}
}

// pushAll: after trouble it is not enough that the past has arrived.
func (w *world) pushAll() {
	w.log("pushes after the trouble")
	for _, channel := range append(channelNames, wire.AllChannel) {
		w.push(pick(w, w.nodes), "channel", channel)
	}
	for _, name := range w.names {
		w.push(pick(w, w.nodes), "client", name)
	}
	w.flow()
}

// reunite connects every client, follows every channel and acknowledges everything.
func (w *world) reunite() {
	w.log("everyone connects")
	for _, name := range w.names {
		cl := w.clients[name]
		for _, c := range w.connsOf(cl) {
			if c.life == ended {
				c.notice()
			}
		}
		mine := w.connsOf(cl)
		if len(mine) == 0 {
			cl.dial(pick(w, w.nodes))
			w.flow()
			mine = w.connsOf(cl)
		}
		if len(mine) != 1 || w.stopped() {
			w.violate("%s has %d connections", name, len(mine))
			return
		}
		for _, channel := range channelNames {
			if mine[0].subs[channel] == nil {
				mine[0].subscribe(channel, cl.resume(channel))
				w.flow()
			}
		}
	}
	for _, name := range w.names {
		cl := w.clients[name]
		for _, c := range w.connsOf(cl) {
			if c.inbox > 0 && !cl.auto {
				c.ack(c.inbox)
			}
		}
	}
	w.flow()
	if w.faulty() {
		w.pass()
	}
}

// checkReceived: every message of every client came, or was declared lost.
func (w *world) checkReceived() {
	for _, name := range w.names {
		cl, j := w.clients[name], w.model.client(name)
		for _, id := range j.ids {
			_, seen := cl.seen[id]
			_, told := cl.told[id]
			if _, gone := j.gone[id]; !seen && !told && !gone {
				w.violate("%s was never sent %d of its queue, nor told of a gap", name, id)
			}
		}
		if r := w.model.look(about{client: name}); len(r.held) > 0 {
			w.violate("%s has acknowledged everything, and its list holds %v", name, r.held)
		}
	}
}

// disperse has everyone go; the brokers stay.
func (w *world) disperse() {
	w.log("everyone leaves")
	for _, c := range w.conns {
		if c.session != nil {
			c.leave()
			c.notice()
		}
	}
	w.flow()
	for range 8 { // longer than a lease: for brokers that crashed
		w.pass()
	}
	for range 3 {
		w.clean(func() { _, _ = w.janitor.ServersRound(backgroundContext) })
		w.flow()
		w.pass()
	}
	w.clean(func() { _, _ = w.janitor.QueuesRound(backgroundContext) })
	w.flow()
}

// checkNobody: no ghosts.
func (w *world) checkNobody() {
	ctx := context.Background()
	channels, _, _ := w.registry.Channels(ctx, "", "", 100)
	for _, channel := range append(channels, append(channelNames, wire.AllChannel)...) {
		if servers, _ := w.registry.ChannelServers(ctx, channel); len(servers) > 0 {
			w.violate("nobody is left, and %s is held by %v", channel, servers)
		}
	}
	for _, name := range w.names {
		r := w.model.look(about{client: name})
		// An entry whose server has no lease is not online, whatever it says.
		_, live, _ := w.registry.Lease(ctx, r.entry.Server)
		if live || r.Server != "" && r.Server != w.model.late[name] {
			w.violate("nobody is left, and %s is at %s, its user's entry at %s", name, r.Server, r.entry.Server)
		}
	}
	for _, slot := range w.slots {
		for i := range w.ids[slot] {
			w.checkEmpty(ctx, serverName(slot, i+1))
		}
	}
	listed, _ := w.registry.Listed(ctx)
	for _, server := range listed {
		if !slices.ContainsFunc(w.nodes, func(n *node) bool { return n.serverID() == server }) {
			w.violate("server %s is listed, and gone", server)
		}
	}
	for _, n := range w.nodes {
		if connections, users := n.sessions.Counts(); connections != 0 || users != 0 || n.hub.ChannelCount() != 0 {
			w.violate("%s has %d connections, %d users and %d channels, and nobody is left", n.slot, connections, users, n.hub.ChannelCount())
		}
	}
}

func (w *world) checkEmpty(ctx context.Context, server string) {
	if held, _ := w.registry.HeldChannels(ctx, server, 100); len(held) > 0 {
		w.violate("nobody is left, and %s is noted to hold channels %v", server, held)
	}
	if held, _ := w.registry.HeldClients(ctx, server, 100); len(held) > 0 {
		w.violate("nobody is left, and %s is noted to hold clients %v", server, held)
	}
}
