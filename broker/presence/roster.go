package presence

import (
	"bytes"
	"maps"

	"switchboard/registry"
)

// maxChange is the most members of one call to the store.
const maxChange = 512

// writing is the roster of one channel on this server while it differs from the store's. One call at a time is
// under way, and what comes meanwhile goes with the next.
type writing struct {
	changes map[string]change // by client
	whole   bool              // the store may have anything
	failed  bool              // the next tick tries again
	release func()            // of the channel, which must stay bound meanwhile
}

// change is what has become of a client: the last that was said of its youngest connection.
type change struct {
	member registry.Member
	here   bool
}

// Join says that a client of this server has come into the channel.
func (p *Presence) Join(channel string, m registry.Member) { p.note(channel, change{m, true}) }

// Leave says that it has gone. A younger connection of the client stays.
func (p *Presence) Leave(channel, client string, generation int64) {
	p.note(channel, change{registry.Member{Client: client, Generation: generation}, false})
}

func (p *Presence) note(channel string, c change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writingLocked(channel).note(c)
}

func (w *writing) note(c change) {
	if before, ok := w.changes[c.member.Client]; !ok || before.member.Generation <= c.member.Generation {
		w.changes[c.member.Client] = c
	}
}

func (p *Presence) writingLocked(channel string) *writing {
	w := p.rosters[channel]
	if w == nil {
		w = &writing{changes: map[string]change{}, release: p.opts.Hold(channel)}
		p.rosters[channel] = w
		p.opts.Pool.Go(func() { p.write(channel, w) })
	}
	return w
}

// write brings the store up to date, and comes again, behind all other work, for what was noted meanwhile.
func (p *Presence) write(channel string, w *writing) {
	p.mu.Lock()
	changes, whole := w.changes, w.whole
	w.changes, w.whole = map[string]change{}, false
	p.mu.Unlock()

	err := p.store(channel, changes, whole)

	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil && len(w.changes) == 0 && !w.whole:
		delete(p.rosters, channel)
		w.release()
		return
	case err == nil:
		p.opts.Pool.Go(func() { p.write(channel, w) })
		return
	}
	p.opts.Logger.Warn().Err(err).Msg("presence not written; the next tick tries again")
	w.whole, w.failed = true, true // some of it may have been written
}

// retry takes up what failed.
func (p *Presence) retry() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for channel, w := range p.rosters {
		if w.failed {
			w.failed = false
			p.opts.Pool.Go(func() { p.write(channel, w) })
		}
	}
}

func (p *Presence) store(channel string, changes map[string]change, whole bool) error {
	ctx, cancel := p.context()
	defer cancel()
	server := p.opts.ServerID()
	var c registry.PresenceChange
	if whole {
		held, err := p.opts.Store.Roster(ctx, server, channel)
		if err != nil {
			return err
		}
		c = difference(held.Members, p.opts.Members(channel)) // changes are older than this
	} else {
		c = sorted(changes)
	}
	// Behind a call that broke off the store may have what nobody was told, so all is read again by those who follow.
	for once := whole; once || len(c.Join)+len(c.Leave) > 0; once = false {
		var part registry.PresenceChange
		part, c = first(c)
		changed, err := p.opts.Store.ChangePresence(ctx, server, channel, part)
		if err != nil {
			return err
		}
		for i, since := range changed.Since {
			part.Join[i].Since = since
		}
		p.tell(channel, update{server, changed.Prev, changed.Version, !whole, part}, changed.Watchers)
	}
	if p.opts.Leased() && p.opts.ServerID() == server {
		return nil
	}
	// A server that was suspended meanwhile may have been declared dead and cleaned, and may have another name by now: nobody
	// else would ever take back what it has just written.
	buried, err := p.opts.Store.Buried(ctx, server)
	if err == nil && buried {
		err = p.opts.Store.UnbindChannel(ctx, server, channel)
	}
	return err
}

// tell lets those who follow the channel know, here first.
func (p *Presence) tell(channel string, u update, watchers []string) {
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
			p.opts.Tell(server, h)
		}
	}
}

// sorted are changes as the store takes them.
func sorted(changes map[string]change) (c registry.PresenceChange) {
	for ch := range maps.Values(changes) {
		if ch.here {
			c.Join = append(c.Join, ch.member)
		} else {
			c.Leave = append(c.Leave, ch.member)
		}
	}
	return c
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
func first(c registry.PresenceChange) (part, rest registry.PresenceChange) {
	n := min(len(c.Join), maxChange)
	m := min(len(c.Leave), maxChange-n)
	return registry.PresenceChange{Join: c.Join[:n], Leave: c.Leave[:m]}, registry.PresenceChange{Join: c.Join[n:], Leave: c.Leave[m:]}
}
