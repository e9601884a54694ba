package sim

import (
	"context"
	"slices"
	"time"

	"switchboard/internal/wire"
)

// maxSteps is the most steps until nothing is in progress, after all faults have ended.
const maxSteps = 20_000

// runUntilIdle runs everything that is in progress, in a random order.
func (w *world) runUntilIdle() {
	for range maxSteps {
		runs, calls, hints, links := w.dueRuns(), w.openCalls(), w.dueHints(), w.busyLinks()
		n := len(runs) + len(calls) + len(hints) + len(links)
		switch {
		case w.failed():
			return
		case n == 0:
			w.checkPushes()
			w.checkErasures()
			return
		}
		switch i := w.rng.IntN(n); {
		case i < len(runs):
			w.runLoop(runs[i])
		case i < len(runs)+len(calls):
			w.executeAndAnswer(calls[i-len(runs)])
		case i < len(runs)+len(calls)+len(hints):
			w.deliverAt(hints[i-len(runs)-len(calls)])
		default:
			w.carry(links[i-len(runs)-len(calls)-len(hints)])
		}
	}
	w.violate("the world does not become idle")
}

// heal ends all faults.
func (w *world) heal() {
	w.log("all faults end")
	w.storeDown = false
	w.settleOrphans()
	for _, machine := range w.machines {
		if w.node(machine) == nil {
			w.boot(machine)
		}
	}
	for _, n := range w.nodes {
		n.frozen, n.beatsLost = false, false
	}
	w.runAndCheck()
	if w.faulty() {
		if w.profile == harsh || w.anyEnded { // or it could not leave
			w.waitForLeases()
		}
		if w.hasStates && w.oneIn(2) {
			w.stepStatesRound()
			w.runUntilIdle()
		}
		w.awaitRenewals()
		w.awaitRenewals()
		w.healed = true
	}
}

// waitForLeases waits until the leases of crashed brokers have ended, and lets the janitor clean up
// after them.
func (w *world) waitForLeases() {
	for range 8 {
		w.waitTwoSeconds()
	}
	for range 3 {
		w.startJanitor(func() { _, _ = w.janitor.ServersRound(backgroundContext) })
		w.runUntilIdle()
		w.waitTwoSeconds()
	}
}

// runAndCheck runs everything that is in progress, without a tick. In calm and lossy runs nothing
// may be missing after that.
func (w *world) runAndCheck() {
	w.log("everything is delivered")
	for _, c := range w.conns {
		if c.socket != flowing && c.state != ended && c.node.up() {
			c.unblock()
		}
	}
	w.settle()
	w.runUntilIdle()
	w.sweepAll()
	if !w.faulty() {
		w.checkComplete()
		w.checkRosters(func(n *node) bool { return n.largeChannel == 0 })
		w.checkUsers(false)
	}
}

// sweepAll opens all links, and lets all servers look whether hints were lost. Those without a
// doubt must have everything without a comparison.
func (w *world) sweepAll() {
	w.openLinks()
	w.heartbeats()
	w.runUntilIdle()
	for _, n := range w.live() {
		w.log("%s sweeps", n.machine)
		n.sweep()
	}
	w.runUntilIdle()
}

// awaitRenewals waits until every binding and every registration of a watching server is renewed.
func (w *world) awaitRenewals() {
	for range refreshEvery/(2*time.Second) + 1 {
		w.waitTwoSeconds()
	}
}

// waitTwoSeconds lets two seconds pass without faults.
func (w *world) waitTwoSeconds() {
	w.sleepWithHeartbeats(2 * time.Second)
	w.log("two seconds pass")
	for _, n := range w.nodes {
		n.tick()
		n.startBeat()
		n.sweep()
	}
	w.runUntilIdle()
}

// finish ends a run: everything is delivered, and then all clients disconnect.
func (w *world) finish() {
	steps := []func(){w.heal, w.checkComplete, w.checkOwners, w.checkAllRosters, w.readRosters, w.checkAllRosters, w.checkAllUsers, w.pushAll, w.checkComplete}
	if w.seed%3 > 0 { // in the other runs, clients without a connection stay away
		steps = append(steps, w.reconnectAll, w.checkComplete, w.checkOwners, w.checkReceived, w.checkAllRosters, w.readRosters, w.checkAllRosters)
	}
	steps = append(steps, w.checkStoredErasures, w.leaveButOne, w.checkAllUsers)
	steps = append(steps, w.disconnectAll, w.checkNothingLeft, w.checkNoWatches, w.checkOwnersGone)
	for _, step := range steps {
		if step(); w.failed() {
			return
		}
	}
}

// checkComplete checks that each connected client has all its messages and one connection.
func (w *world) checkComplete() {
	for _, name := range w.names {
		bound := w.model.bound[name]
		if len(bound) > 0 && !slices.ContainsFunc(bound, func(c *conn) bool { return c.reason != wire.CloseSuperseded }) {
			w.violate("%v were bound last, and all are closed as superseded", bound)
		}
	}
	connected := map[string]*conn{} // by client
	for _, c := range w.conns {
		if c.session == nil {
			continue
		}
		name := c.client.name
		if c.state == ended { // the client has left, and the broker has not noticed yet
			continue
		}
		if c.state == dialing {
			w.violate("%v is not connected", c)
			return
		}
		if other := connected[name]; other != nil {
			w.violate("%v and %v are both connected", c, other)
		}
		connected[name] = c
		if r := w.model.readRecord(subject{client: name}); r.Server != c.node.serverID() {
			w.violate("%v is connected, but the store has %s at %q", c, name, r.Server)
		} else if c.client.user != "" && r.entry.Server != r.Server {
			w.violate("%v is connected, but the store has the user's %s at %q", c, name, r.entry.Server)
		}
		for channel, s := range c.subs {
			if next := w.model.nextVisible(channel, s.cursor, s.filter); next != 0 && next <= w.model.announced(channel) {
				w.violate("%v has %s up to %d, and not %d", c, channel, s.cursor, next)
			}
			if s.follows() {
				c.checkFields(channel, s)
			}
		}
		if held := w.model.client(name).held; len(held) > 0 && c.inbox < held[len(held)-1] {
			w.violate("%v has its queue up to %d, want %d", c, c.inbox, held[len(held)-1])
		}
	}
}

// pushAll pushes to every channel and client: after faults, new messages must arrive too.
func (w *world) pushAll() {
	w.log("pushes after the faults")
	for _, channel := range append(channelNames, wire.AllChannel) {
		w.push(pick(w, w.nodes), "channel", channel)
	}
	for _, name := range w.names {
		w.push(pick(w, w.nodes), "client", name)
	}
	w.runUntilIdle()
}

// reconnectAll connects every client, subscribes to every channel and acknowledges everything.
func (w *world) reconnectAll() {
	w.log("all clients connect")
	for _, name := range w.names {
		cl := w.clients[name]
		for _, c := range w.connections(cl) {
			if c.state == ended {
				c.noticeEnd()
			}
		}
		conns := w.connections(cl)
		if len(conns) == 0 {
			cl.dial(pick(w, w.nodes))
			w.runUntilIdle()
			conns = w.connections(cl)
		}
		if len(conns) != 1 || w.failed() {
			w.violate("%s has %d connections", name, len(conns))
			return
		}
		for _, channel := range channelNames {
			if conns[0].subs[channel] == nil {
				conns[0].subscribeAnd(channel, cl.resumePosition(channel), !w.oneIn(3))
				w.runUntilIdle()
			}
		}
	}
	for _, name := range w.names {
		cl := w.clients[name]
		for _, c := range w.connections(cl) {
			if c.inbox > 0 && !cl.auto {
				c.ack(c.inbox)
			}
		}
	}
	w.runUntilIdle()
	if w.faulty() {
		w.waitTwoSeconds()
	}
}

// checkReceived checks that each client received every message of its queue, or a gap for it.
func (w *world) checkReceived() {
	for _, name := range w.names {
		cl, queue := w.clients[name], w.model.client(name)
		for _, id := range queue.ids {
			_, seen := cl.seen[id]
			_, lost := cl.lost[id]
			if _, withdrawn := queue.withdrawn[id]; !seen && !lost && !withdrawn {
				w.violate("%s received neither %d of its queue nor a gap for it", name, id)
			}
		}
		if r := w.model.readRecord(subject{client: name}); len(r.held) > 0 {
			w.violate("%s has acknowledged everything, but its list holds %v", name, r.held)
		}
	}
}

// disconnectAll disconnects every client. The brokers keep running.
func (w *world) disconnectAll() {
	w.log("all clients leave")
	for _, c := range w.conns {
		if c.session != nil {
			c.leave()
			c.noticeEnd()
		}
	}
	w.runUntilIdle()
	w.waitForLeases()
	w.startJanitor(func() { _, _ = w.janitor.QueuesRound(backgroundContext) })
	w.runUntilIdle()
	w.startJanitor(func() { _, _ = w.janitor.StatesRound(backgroundContext) })
	w.runUntilIdle()
}

// checkNothingLeft checks that the stores and the brokers hold nothing for clients that have left.
func (w *world) checkNothingLeft() {
	ctx := context.Background()
	channels, _, _ := w.registry.Channels(ctx, "", "", 100)
	for _, channel := range append(channels, append(channelNames, wire.AllChannel)...) {
		if servers, _ := w.registry.ChannelServers(ctx, channel); len(servers) > 0 {
			w.violate("all clients left, but %s is held by %v", channel, servers)
		}
	}
	for _, name := range w.names {
		r := w.model.readRecord(subject{client: name})
		// An entry of a server without a lease counts as offline.
		_, live, _ := w.registry.Lease(ctx, r.entry.Server)
		// A server that crashed could not look again for its late binds.
		late := r.Server == w.model.boundLate[name] && !slices.ContainsFunc(w.nodes, func(n *node) bool { return n.serverID() == r.Server })
		if live || r.Server != "" && r.Server != w.model.boundAfterDeath[name] && !late {
			w.violate("all clients left, but %s is at %s, its user's entry at %s", name, r.Server, r.entry.Server)
		}
	}
	for _, machine := range w.machines {
		for i := range w.ids[machine] {
			w.checkNothingHeld(ctx, serverName(machine, i+1))
		}
	}
	listed, _ := w.registry.Listed(ctx)
	for _, server := range listed {
		if !slices.ContainsFunc(w.nodes, func(n *node) bool { return n.serverID() == server }) {
			w.violate("server %s is listed, but has ended", server)
		}
	}
	for _, n := range w.nodes {
		if connections, users := n.sessions.Counts(); connections != 0 || users != 0 || n.hub.ChannelCount() != 0 {
			w.violate("%s has %d connections, %d users and %d channels after all clients left", n.machine, connections, users, n.hub.ChannelCount())
		}
	}
}

// checkNothingHeld checks that the registry lists no channels and clients for the server.
func (w *world) checkNothingHeld(ctx context.Context, server string) {
	if held, _ := w.registry.HeldChannels(ctx, server, 100); len(held) > 0 {
		w.violate("all clients left, but %s still holds channels %v", server, held)
	}
	if held, _ := w.registry.HeldClients(ctx, server, 100); len(held) > 0 {
		w.violate("all clients left, but %s still holds clients %v", server, held)
	}
}
