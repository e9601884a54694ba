package presence

import (
	"bytes"
	"context"
	"sync"

	"switchboard/registry"
)

// written is a roster under way to the store.
type rosterWrite struct {
	pending *pendingRoster
	changes []memberChange
	rewrite bool                    // instead of changes
	rest    registry.PresenceChange // not written yet
	err     error
}

// store writes what is left of each.
func (p *Presence) storeBatch(batch []*rosterWrite) {
	ctx, cancel := p.context()
	defer cancel()
	server := p.opts.ServerID()
	for _, b := range batch {
		if !b.rewrite {
			b.rest = presenceChange(b.changes)
			continue
		}
		var held registry.Roster
		if held, b.err = p.opts.Store.Roster(ctx, server, b.pending.channel); b.err == nil {
			b.rest = difference(held.Members, p.opts.Members(b.pending.channel)) // all that was noted is older than this
		}
	}
	// Behind a call that broke off the store may have what nobody was told, so all is read again by those who follow.
	for once := true; p.storeParts(ctx, server, batch, once); once = false {
	}
	if p.opts.HoldsLease() && p.opts.ServerID() == server {
		return
	}
	// A server that was suspended meanwhile may have been declared dead and cleaned, and may have another name by now: nobody
	// else would ever take back what it has just written.
	buried, err := p.opts.Store.Buried(ctx, server)
	var wg sync.WaitGroup
	for _, b := range batch {
		switch {
		case b.err != nil:
		case err != nil:
			b.err = err
		case buried: // at once, so that they share their round trips
			wg.Go(func() { b.err = p.opts.Store.UnbindChannel(ctx, server, b.pending.channel) })
		}
	}
	wg.Wait()
}

// storeParts writes the next part of each, if only one that changes nothing where the whole was read, and says whether there
// was any.
func (p *Presence) storeParts(ctx context.Context, server string, batch []*rosterWrite, once bool) bool {
	var parts []registry.RosterChange
	var of []*rosterWrite
	for _, b := range batch {
		if b.err == nil && (len(b.rest.Join)+len(b.rest.Leave) > 0 || b.rewrite && once) {
			c := registry.RosterChange{Channel: b.pending.channel}
			c.PresenceChange, b.rest = splitChange(b.rest)
			parts, of = append(parts, c), append(of, b)
		}
	}
	if len(parts) == 0 {
		return false
	}
	for i, o := range p.opts.Store.ChangePresence(ctx, server, parts) {
		if of[i].err = o.Err; o.Err != nil {
			continue
		}
		part := parts[i].PresenceChange
		for k, since := range o.Since {
			part.Join[k].Since = since
		}
		p.publish(parts[i].Channel, rosterUpdate{server, o.Prev, o.Version, !of[i].rewrite, part}, o.Watchers)
	}
	return true
}

// tell lets those who follow the channel know, here first.
func (p *Presence) publish(channel string, u rosterUpdate, watchers []string) {
	p.apply(channel, u)
	if len(watchers) == 0 || len(watchers) == 1 && watchers[0] == u.server {
		return
	}
	h, err := u.encode(channel)
	if err != nil { // an info that is no JSON: whoever follows reads the roster, and fails as we do
		p.opts.Logger.Error().Err(err).Msg("presence change not encoded")
		return
	}
	for _, server := range watchers {
		if server != u.server {
			p.opts.Notify(server, h)
		}
	}
}

// difference is what makes held the same as here.
func difference(held, here []registry.Member) (c registry.PresenceChange) {
	gone := make(map[string]registry.Member, len(held))
	for _, m := range held {
		gone[m.Client] = m
	}
	for _, m := range here {
		if h, ok := gone[m.Client]; !ok || h.User != m.User || h.Generation != m.Generation || !bytes.Equal(h.Info, m.Info) {
			c.Join = append(c.Join, m)
		}
		delete(gone, m.Client)
	}
	for _, m := range gone {
		c.Leave = append(c.Leave, m)
	}
	return c
}

// first splits off as much of c as goes in one call.
func splitChange(c registry.PresenceChange) (part, rest registry.PresenceChange) {
	n := min(len(c.Join), maxChange)
	m := min(len(c.Leave), maxChange-n)
	return registry.PresenceChange{Join: c.Join[:n], Leave: c.Leave[:m]}, registry.PresenceChange{Join: c.Join[n:], Leave: c.Leave[m:]}
}
