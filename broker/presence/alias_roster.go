package presence

import (
	"context"

	"switchboard/internal/state"
	"switchboard/registry"
)

// readAliases reads the aliases that are not known or may have changed, of all the channels at
// once. It returns the errors by channel.
func (p *Presence) readAliases(ctx context.Context, channels []string) (failed map[string]error) {
	reads := p.aliases.unread(channels)
	if len(reads) == 0 {
		return nil
	}
	p.opts.Fields(ctx, reads)
	p.aliases.apply(reads)
	for _, r := range reads {
		if r.Err != nil {
			if failed == nil {
				failed = map[string]error{}
			}
			failed[r.Channel] = r.Err
		}
	}
	return failed
}

// loadAlias reads the alias of a client if it is not known.
func (p *Presence) loadAlias(ctx context.Context, channel, client string) error {
	if _, ready := p.aliasOf(channel, client); ready {
		return nil
	}
	failed := p.readAliases(ctx, []string{channel})
	p.requestAliases(channel) // what was read here, a write under way may have missed
	return failed[channel]
}

// Alias returns how a client of this server is shown in a channel: shows is false if by its id, and
// alias is empty if it is not shown. It may call the store, so do not call it on a loop.
func (p *Presence) Alias(ctx context.Context, channel, client string) (alias string, shows bool, err error) {
	if !p.showsAliases(channel) {
		return "", false, nil
	}
	if err := p.loadAlias(ctx, channel, client); err != nil {
		return "", false, err
	}
	alias, _ = p.aliasOf(channel, client)
	return alias, true, nil
}

// unread returns the reads of the aliases that are not known or may have changed, of up to
// maxChange fields each.
func (t *aliasTable) unread(channels []string) (reads []FieldRead) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, channel := range channels {
		c := t.channels[channel]
		if c == nil {
			continue
		}
		r := FieldRead{Channel: channel}
		for field, u := range c.users {
			if u.read == u.version {
				continue
			}
			if len(r.Fields) == maxChange {
				reads = append(reads, r)
				r = FieldRead{Channel: channel}
			}
			r.Fields, r.versions = append(r.Fields, field), append(r.versions, u.version)
		}
		if len(r.Fields) > 0 {
			reads = append(reads, r)
		}
	}
	return reads
}

// apply stores the answers. An answer is dropped if the field may have changed since unread:
// another read follows.
func (t *aliasTable) apply(reads []FieldRead) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range reads {
		c := t.channels[r.Channel]
		if c == nil || r.Err != nil {
			continue
		}
		for i, field := range r.Fields {
			u := c.users[field]
			if u == nil || u.version != r.versions[i] {
				continue
			}
			u.read = u.version
			if text := r.Texts[i]; state.IsAlias(text) {
				c.setAlias(u, text)
			} else {
				c.setAlias(u, "")
			}
		}
	}
}

// aliasChange returns how the roster of a channel must change. The caller writes the change, or
// rewrites the roster.
func (p *Presence) aliasChange(channel string) (change registry.PresenceChange) {
	p.takeAliasChange(channel, func(c *aliasChannel) {
		for alias := range c.changed {
			s := c.shown[alias]
			switch {
			case s.users > 0 && s.written != s.user:
				change.Join = append(change.Join, aliasMember(alias, s.user))
			case s.users == 0 && s.written != "":
				change.Leave = append(change.Leave, aliasMember(alias, s.written))
			}
		}
	})
	return change
}

// aliasMembers returns what the roster of a channel must be. The caller rewrites the roster.
func (p *Presence) aliasMembers(channel string) (list []registry.Member) {
	p.takeAliasChange(channel, func(c *aliasChannel) {
		for alias, s := range c.shown {
			c.changed[alias] = struct{}{}
			if s.users > 0 {
				list = append(list, aliasMember(alias, s.user))
			}
		}
	})
	return list
}

// takeAliasChange calls read with the aliases of a channel, and then notes that the roster gets the
// changed ones. Without aliases it does nothing.
func (p *Presence) takeAliasChange(channel string, read func(c *aliasChannel)) {
	t := &p.aliases
	t.mu.Lock()
	c := t.channels[channel]
	if c == nil {
		t.mu.Unlock()
		return
	}
	read(c)
	changed := t.finishChange(channel, c)
	t.mu.Unlock()
	p.endHereOf(channel, changed)
}

// finishChange notes that the roster gets all changes, and returns their aliases. The caller holds
// mu.
func (t *aliasTable) finishChange(channel string, c *aliasChannel) (changed []string) {
	for alias := range c.changed {
		changed = append(changed, alias)
		s := c.shown[alias]
		if s.written = s.user; s.users == 0 {
			delete(c.shown, alias)
		}
	}
	if clear(c.changed); len(c.clients) == 0 && c.changing == 0 {
		t.remove(channel)
	}
	return changed
}

// aliasMember returns the entry of an alias in a roster.
func aliasMember(alias, user string) registry.Member {
	return registry.Member{Client: alias, User: user, Generation: registry.AliasGeneration}
}

// isAliasMember reports whether a member stands for the clients of a user.
func isAliasMember(m registry.Member) bool { return m.Generation == registry.AliasGeneration }

// forClients returns a member as clients see it.
func forClients(m registry.Member) registry.Member {
	if isAliasMember(m) {
		m.User, m.Info = "", nil
	}
	return m
}

// AliasesChanged applies new access rules to channels that now show aliases, or no longer do, or
// have them in another field. The here values there end. It does not wait for the result.
func (p *Presence) AliasesChanged(channels []string) {
	for _, channel := range channels {
		p.opts.Pool.Go(func() { p.changeAliases(channel) })
	}
}

// changeAliases is AliasesChanged for one channel.
func (p *Presence) changeAliases(channel string) {
	p.mu.Lock()
	v := p.views[channel]
	p.mu.Unlock()
	shows := p.showsAliases(channel)
	if v != nil {
		v.setAliased(shows)
	}
	p.rejoinAliases(channel)
	p.endAllHere(channel)
	p.rewriteRosters([]string{channel})
}

// rejoinAliases makes the table what it is if all clients join now.
func (p *Presence) rejoinAliases(channel string) {
	t := &p.aliases
	t.mu.Lock()
	c := t.getOrCreate(channel)
	if c.changing++; c.touched == nil {
		c.touched = map[string]struct{}{}
	}
	t.mu.Unlock()
	members := p.opts.Members(channel)
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.channels[channel]
	if before == nil || !p.showsAliases(channel) {
		t.remove(channel)
		return
	}
	c = newAliasChannel(t)
	for _, m := range members {
		if _, touched := before.touched[m.Client]; !touched && m.User != "" {
			c.join(p.opts.AliasField(channel, m.User), m)
		}
	}
	for client := range before.touched {
		if now, known := before.clients[client]; known {
			user := before.users[now.field].name
			c.join(now.field, registry.Member{Client: client, User: user, Generation: now.generation})
		}
	}
	if c.changing = before.changing - 1; c.changing > 0 { // after another reload
		c.touched = before.touched
	}
	t.channels[channel] = c
}

// setAliased is called when the channel begins or stops to show aliases.
func (v *View) setAliased(aliased bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.aliased.Store(aliased)
	for server, r := range v.rosters {
		var hidden registry.PresenceChange
		for _, m := range r.members {
			if aliased && !isAliasMember(m) {
				hidden.Leave = append(hidden.Leave, m)
			}
		}
		v.applyChangeLocked(server, r.version, hidden)
	}
	v.allDirty = true
	v.wakeReaderLocked()
}

// hide removes the clients that joined a channel before it showed aliases.
func (v *View) hide(c registry.PresenceChange) registry.PresenceChange {
	if !v.aliased.Load() {
		return c
	}
	c.Join = onlyAliases(c.Join)
	return c
}

// onlyAliases returns the members that stand for the clients of a user.
func onlyAliases(members []registry.Member) []registry.Member {
	kept := make([]registry.Member, 0, len(members))
	for _, m := range members {
		if isAliasMember(m) {
			kept = append(kept, m)
		}
	}
	return kept
}
