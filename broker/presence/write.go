package presence

import (
	"bytes"
	"context"
	"sync"

	"switchboard/registry"
)

// rosterWrite is the write of one roster.
type rosterWrite struct {
	pending *pendingRoster
	changes []memberChange
	rewrite bool                    // read the stored roster and write the difference, instead of changes
	equal   bool                    // with rewrite: write nothing if there is no difference
	aliased bool                    // the channel shows aliases, so that changes are not used
	rest    registry.PresenceChange // not written yet
	err     error
}

// storeBatch writes a batch of rosters to the store.
func (p *Presence) storeBatch(batch []*rosterWrite) {
	ctx, cancel := p.context()
	defer cancel()
	server := p.opts.ServerID()
	p.prepareWrites(ctx, server, batch)
	// A call that failed may have changed a roster in the store without a hint. So a rewrite after a
	// failure is always published, even if nothing is left to write.
	for first := true; p.storeParts(ctx, server, batch, first); first = false {
	}
	if p.opts.HoldsLease() && p.opts.ServerID() == server {
		return
	}
	// A server that was suspended meanwhile may have been declared dead and cleaned up, and may have
	// a new id. Then no other process would ever remove the rosters that this call has written.
	dead, err := p.opts.Store.DeclaredDead(ctx, server)
	var wg sync.WaitGroup
	for _, b := range batch {
		switch {
		case b.err != nil:
		case err != nil:
			b.err = err
		case dead: // concurrently, so that the calls share round trips
			wg.Go(func() { b.err = p.opts.Store.UnbindChannel(ctx, server, b.pending.channel) })
		}
	}
	wg.Wait()
}

// prepareWrites sets what each of the writes has to change in the store.
func (p *Presence) prepareWrites(ctx context.Context, server string, batch []*rosterWrite) {
	aliased := p.withAliases(batch)
	failed := p.readAliases(ctx, aliased)
	for _, b := range batch {
		channel := b.pending.channel
		switch b.err = failed[channel]; {
		case b.err != nil:
		case b.rewrite:
			var stored registry.Roster
			if stored, b.err = p.opts.Store.Roster(ctx, server, channel); b.err != nil {
				continue
			}
			members := p.aliasMembers(channel)
			if !b.aliased {
				members = p.opts.Members(channel) // these include all pending changes
			}
			b.rest = difference(stored.Members, members)
		case b.aliased: // changes may have clients that joined before the access rules changed
			b.rest = p.aliasChange(channel)
		default:
			b.rest = presenceChange(b.changes)
		}
	}
}

// withAliases finds the writes of a batch whose channels show aliases, and returns the channels.
func (p *Presence) withAliases(batch []*rosterWrite) (channels []string) {
	for _, b := range batch {
		if b.aliased = p.showsAliases(b.pending.channel); b.aliased {
			channels = append(channels, b.pending.channel)
		}
	}
	return channels
}

// storeParts writes the next part of each roster and reports whether there was any. In the first
// call a rewrite has a part even if nothing is left to write.
func (p *Presence) storeParts(ctx context.Context, server string, batch []*rosterWrite, first bool) bool {
	var parts []registry.RosterChange
	var writes []*rosterWrite
	for _, b := range batch {
		if b.err == nil && (len(b.rest.Join)+len(b.rest.Leave) > 0 || b.rewrite && !b.equal && first) {
			c := registry.RosterChange{Channel: b.pending.channel}
			c.PresenceChange, b.rest = splitChange(b.rest)
			parts, writes = append(parts, c), append(writes, b)
		}
	}
	if len(parts) == 0 {
		return false
	}
	for i, o := range p.opts.Store.ChangePresence(ctx, server, parts) {
		if writes[i].err = o.Err; o.Err != nil {
			continue
		}
		part := parts[i].PresenceChange
		for k, since := range o.Since {
			part.Join[k].Since = since
		}
		p.publish(parts[i].Channel, rosterUpdate{server, o.Prev, o.Version, !writes[i].rewrite, part}, o.Watchers)
	}
	return true
}

// publish applies an update to the view of this server and sends it to the other servers with
// watchers.
func (p *Presence) publish(channel string, u rosterUpdate, watchers []string) {
	p.apply(channel, u)
	if len(watchers) == 0 || len(watchers) == 1 && watchers[0] == u.server {
		return
	}
	h, err := u.encode(channel)
	if err != nil { // an info is not JSON; the store in Redis would have refused it
		p.opts.Logger.Error().Err(err).Msg("presence change not encoded")
		return
	}
	for _, server := range watchers {
		if server != u.server {
			p.opts.Notify(server, h)
		}
	}
}

// difference returns the change that turns the roster stored into members.
func difference(stored, members []registry.Member) (c registry.PresenceChange) {
	leaving := make(map[string]registry.Member, len(stored)) // stored members not found in members so far
	for _, m := range stored {
		leaving[m.Client] = m
	}
	for _, m := range members {
		if old, ok := leaving[m.Client]; !ok || old.User != m.User || old.Generation != m.Generation || !bytes.Equal(old.Info, m.Info) {
			c.Join = append(c.Join, m)
		}
		delete(leaving, m.Client)
	}
	for _, m := range leaving {
		c.Leave = append(c.Leave, m)
	}
	return c
}

// splitChange splits c into a part for one store call and the rest.
func splitChange(c registry.PresenceChange) (part, rest registry.PresenceChange) {
	n := min(len(c.Join), maxChange)
	m := min(len(c.Leave), maxChange-n)
	return registry.PresenceChange{Join: c.Join[:n], Leave: c.Leave[:m]}, registry.PresenceChange{Join: c.Join[n:], Leave: c.Leave[m:]}
}
