package sim

import (
	"maps"
	"slices"

	"switchboard/internal/wire"
)

// roster is what a connection that watches a channel knows of its members. A client that it has
// heard nothing of is in neither state.
type roster struct {
	present map[string]bool // by client; false means that the client is known to be away
	ahead   map[string]bool // what a page has shown before the events: the next event may repeat it
}

// watchPresence adds the presence of a channel to a subscription, or reads the members if it is
// there.
func (c *conn) watchPresence(channel string) {
	if c.hasRequest(channel) {
		return
	}
	if c.subs[channel].roster != nil {
		c.client.w.log("%v reads the members of %s", c, channel)
		c.send(wire.Request{Type: wire.TypePresence, Channel: channel})
		return
	}
	c.client.w.log("%v watches %s", c, channel)
	c.send(wire.Request{Type: wire.TypeSubscribe, Channel: channel, Presence: true})
}

// beginRoster handles the answer to a subscribe with presence.
func (s *subscription) beginRoster() {
	if s.roster == nil {
		s.roster = &roster{present: map[string]bool{}, ahead: map[string]bool{}}
	}
}

// presence processes a join, a leave or a presence event.
func (c *conn) presence(e wire.Event) {
	s := c.subs[e.Channel]
	if s == nil || s.roster == nil {
		c.client.w.violate("%v received %s without watching", c, toJSON(e))
		return
	}
	switch {
	case e.Type == wire.TypeJoin:
		c.changeMember(s.roster, e.Client, true)
	case e.Type == wire.TypeLeave:
		c.changeMember(s.roster, e.Client, false)
	case e.Clients != nil:
		if e.Next != "" {
			c.client.w.violate("%v received a page of %d members that has a successor", c, len(*e.Clients))
		}
		c.loadRoster(s.roster, *e.Clients, e.Ref.Set)
	case len(e.Joined)+len(e.Left) == 0: // more than one event can say
		clear(s.roster.present)
	default:
		for _, m := range e.Left {
			c.changeMember(s.roster, m.Client, false)
		}
		for _, m := range e.Joined {
			c.changeMember(s.roster, m.Client, true)
		}
	}
}

// changeMember applies a join or a leave. It may repeat only what a page has shown.
func (c *conn) changeMember(r *roster, client string, present bool) {
	before, known := r.present[client]
	switch {
	case client == c.client.name:
		c.client.w.violate("%v received its own join or leave", c)
	case known && before == present && !r.ahead[client]:
		c.client.w.violate("%v received twice that %s is a member: %v", c, client, present)
	}
	r.present[client] = present
	delete(r.ahead, client)
}

// loadRoster replaces the roster by a list of all members. A page may be ahead of the events.
func (c *conn) loadRoster(r *roster, members []wire.Member, page bool) {
	before := maps.Clone(r.present)
	for _, name := range c.client.w.names {
		r.present[name] = slices.ContainsFunc(members, func(m wire.Member) bool { return m.Client == name })
		if known, heard := before[name]; page && (!heard || known != r.present[name]) {
			r.ahead[name] = true
		} else if !page {
			delete(r.ahead, name)
		}
	}
}

// checkAllRosters checks all watchers, after a tick: the changes of large channels wait for it.
func (w *world) checkAllRosters() {
	for _, n := range w.nodes {
		n.tick()
	}
	w.runUntilIdle()
	w.checkRosters(func(*node) bool { return true })
}

// checkRosters checks, when nothing is in progress, that the watchers on some nodes know the
// members of each channel.
func (w *world) checkRosters(on func(*node) bool) {
	for _, channel := range channelNames {
		members, unknown := w.members(channel)
		for _, c := range w.conns {
			s := c.subs[channel]
			if c.session == nil || c.state != open || s == nil || s.roster == nil || !on(c.node) {
				continue
			}
			for client, present := range s.roster.present {
				if client != c.client.name && !unknown[client] && present != members[client] {
					w.violate("%v knows that %s is a member of %s: %v; it should know %v", c, client, channel, present, members[client])
				}
			}
		}
	}
}

// members returns the clients that are subscribed to a channel. For a client that has left, and
// whose broker has not noticed it yet, this is unknown.
func (w *world) members(channel string) (members, unknown map[string]bool) {
	members, unknown = map[string]bool{}, map[string]bool{}
	for _, c := range w.conns {
		switch {
		case c.session == nil:
		case c.state != open:
			unknown[c.client.name] = true
		case c.subs[channel] != nil:
			members[c.client.name] = true
		}
	}
	return members, unknown
}

// readRosters lets every watcher read the members.
func (w *world) readRosters() {
	for _, c := range w.conns {
		for _, channel := range channelNames {
			if s := c.subs[channel]; c.session != nil && c.state == open && s != nil && s.roster != nil {
				c.watchPresence(channel)
				w.runUntilIdle()
			}
		}
	}
}
