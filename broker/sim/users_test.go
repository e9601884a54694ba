package sim

import (
	"context"
	"slices"
	"strings"

	"switchboard/internal/wire"
	"switchboard/registry"
)

// graceTicks is how many ticks a user may be away before going offline: the default of
// presence.Options.Grace.
const graceTicks = 5

// watchedUsers are the users that clients watch.
var watchedUsers = []string{"ann", "ben"}

// userWatch is what a connection that watches a user knows of it.
type userWatch struct {
	online bool // by the last event; a new watcher takes the user as offline
	leaves int  // how often the user went offline
	ended  int  // absences.ended of the server when the client subscribed
}

// absences are the absences of a user, as a server has read them from the store. In a run without
// faults, all servers have leases, so a read shows a user as away if and only if it has no binding.
type absences struct {
	away  bool // in the last read
	since int  // the tick of the first read that showed the present absence
	over  bool // the present absence is longer than the grace period
	ended int  // how many absences were longer than the grace period
}

// userOf returns the user of a system channel.
func userOf(channel string) (user string, ok bool) {
	return strings.CutPrefix(channel, wire.UserChannelPrefix)
}

// mayWatch reports whether the client may watch a user: with access rules only itself.
func (cl *client) mayWatch(user string) bool { return !cl.w.hasStates || cl.user == user }

// stepUser lets a client begin or end to watch a user.
func (c *conn) stepUser() {
	user := pick(c.client.w, []string{"ben", "ben", "ann"}) // ben has one client, so it is often offline
	switch {
	case !c.client.mayWatch(user) || c.hasRequest(wire.UserChannelPrefix+user):
	case c.watches[user] == nil || c.client.w.oneIn(8): // a second subscribe changes nothing
		c.watchUser(user)
	case c.client.w.oneIn(2):
		c.unsubscribe(wire.UserChannelPrefix + user)
	}
}

// watchUser subscribes to the presence of a user.
func (c *conn) watchUser(user string) {
	c.client.w.log("%v watches the user %s", c, user)
	c.send(wire.Request{Type: wire.TypeSubscribe, Channel: wire.UserChannelPrefix + user})
}

// userWatched handles the answer to a subscribe to the presence of a user.
func (c *conn) userWatched(user string, req request) {
	if c.watches[user] == nil {
		c.watches[user] = &userWatch{ended: req.absencesEnded}
	}
}

// userChanged processes a join or a leave of a watched user. Only a connection that was backed up
// may receive again what it knows.
func (c *conn) userChanged(user string, e wire.Event) {
	w, s, online := c.client.w, c.watches[user], e.Type == wire.TypeJoin
	switch {
	case s == nil:
		w.violate("%v received %s without watching", c, toJSON(e))
		return
	case e.Type == wire.TypePresence || e.User != user || e.Client != "":
		w.violate("%v received %s, want a join or a leave of %s", c, toJSON(e), user)
	case s.online != online:
		s.online = online
	case !c.resuming:
		w.violate("%v received twice that %s is online: %v", c, user, online)
	default:
		return
	}
	if online {
		return
	}
	s.leaves++
	if ended := c.node.absencesOf(user).ended - s.ended; s.leaves > ended && !w.faulty() {
		w.violate("%v received %d leaves of %s, which was away for longer than the grace period %d times", c, s.leaves, user, ended)
	}
}

// absencesOf returns the absences of a user, as the server has read them.
func (n *node) absencesOf(user string) *absences {
	if n.absences[user] == nil {
		n.absences[user] = &absences{}
	}
	return n.absences[user]
}

// userRead records what a server has read of a user for its watchers.
func (n *node) userRead(user string, bindings []registry.Binding) {
	a, away := n.absencesOf(user), !slices.ContainsFunc(bindings, func(b registry.Binding) bool { return b.Server != "" })
	switch {
	case !away || !a.away:
		a.away, a.over, a.since = away, false, n.ticks
	case !a.over && n.ticks-a.since >= graceTicks:
		a.over = true
		a.ended++
	}
}

// isOnline reports whether a client of the user is bound to a server with a lease.
func (w *world) isOnline(user string) bool {
	ctx := context.Background()
	bindings, _ := w.registry.User(ctx, user)
	return slices.ContainsFunc(bindings, func(b registry.Binding) bool {
		_, live, _ := w.registry.Lease(ctx, b.Server)
		return live
	})
}

// checkUsers checks, when nothing is in progress, what watchers know of users. They know at once
// that a user is online. That it is offline they know only after the grace period.
func (w *world) checkUsers(afterGrace bool) {
	for _, user := range watchedUsers {
		online := w.isOnline(user)
		for _, c := range w.conns {
			s := c.watches[user]
			if c.session == nil || c.state != open || s == nil {
				continue
			}
			if s.online != online && (online || afterGrace) {
				w.violate("%v knows that %s is online: %v; it should know %v", c, user, s.online, online)
			}
		}
	}
}

// tickAll lets all brokers tick some times.
func (w *world) tickAll(times int) {
	for range times {
		for _, n := range w.nodes {
			n.tick()
		}
		w.runUntilIdle()
	}
}

// checkAllUsers checks the watchers of users after the grace period. The read after it follows the
// last tick.
func (w *world) checkAllUsers() {
	w.tickAll(graceTicks + 2)
	w.checkUsers(true)
}

// leaveButOne lets all clients but one leave. The one that stays watches the users that it may. In
// some runs its server finds only with its next renewal that the store has lost who watches.
func (w *world) leaveButOne() {
	connected := slices.DeleteFunc(slices.Clone(w.conns), func(c *conn) bool { return c.session == nil || c.state != open })
	if len(connected) == 0 {
		return
	}
	last := pick(w, connected)
	for _, user := range watchedUsers {
		if last.client.mayWatch(user) && last.watches[user] == nil {
			last.watchUser(user)
		}
	}
	forgets := w.oneIn(3)
	if forgets {
		w.runUntilIdle()
		w.log("the store has forgotten who watches users")
		w.loseWatches(func(string) bool { return true })
	}
	w.log("all clients but %v leave", last)
	for _, c := range w.conns {
		if c.session != nil && c != last {
			c.leave()
			c.noticeEnd()
			w.runUntilIdle() // several leaves in one read of a roster have no order
		}
	}
	w.runUntilIdle()
	if forgets {
		w.awaitRenewals()
	}
}

// checkNoWatches checks that no broker watches a user after all clients left. After a failure,
// a registration in the store may end later.
func (w *world) checkNoWatches() {
	for _, n := range w.nodes {
		if watched := n.presence.WatchedUsers(); watched != 0 {
			w.violate("all clients left, but %s watches %d users", n.machine, watched)
		}
		for i, o := range w.registry.WatchUsers(context.Background(), n.serverID(), watchedUsers) {
			if o.Renewed && !w.faulty() {
				w.violate("all clients left, but %s is registered as watching %s", n.machine, watchedUsers[i])
			}
		}
	}
}
