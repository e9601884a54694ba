package presence

import (
	"context"
	"time"

	"switchboard/internal/wire"
	"switchboard/registry"
)

// SetHere sets the value that a client of this server shows to the watchers of a channel. data is
// compact JSON of at most MaxHere bytes, and is kept. Nil ends the value. A value of an older
// connection of the client has no effect.
//
// ready is false if nothing was done because LoadHere must be called first. The error is a
// *wire.Error if the channel is large, or if it shows aliases and the client has none. SetHere does
// not call the store.
//
// All clients with the same alias share one value.
func (p *Presence) SetHere(channel, client string, generation int64, data []byte) (ready bool, err error) {
	if data == nil {
		p.EndHere(channel, client, generation)
		return true, nil
	}
	holder := hereHolder{client, generation}
	aliased := p.showsAliases(channel)
	if aliased {
		if client, ready = p.aliasOf(channel, client); !ready {
			return false, nil
		}
		if generation = registry.AliasGeneration; client == "" {
			return true, wire.Errorf(wire.Forbidden, "channel %s: the client is not shown there", channel)
		}
	}
	h := p.lockHere(channel, false)
	if h == nil {
		return false, nil
	}
	defer h.mu.Unlock()
	if time.Since(h.loaded) >= hereTTL {
		return false, nil
	}
	v := h.values[client]
	if h.clients > p.opts.LargeChannel || v == nil && len(h.values) >= h.maxValues() {
		return true, wire.Errorf(wire.RateLimited, "channel %s: it has more than %d clients, so no values are sent in it",
			channel, p.opts.LargeChannel)
	}
	if v == nil {
		v = &hereValue{client: client}
		h.values[client] = v
	}
	if v.generation < generation {
		v.generation, v.data = generation, nil // drop the value of the older connection
	}
	if v.generation == generation {
		if h.changeLocked(v, data); aliased {
			h.setHolderLocked(client, holder)
		}
		h.scheduleLocked(time.Until(h.lastSend.Add(hereInterval)))
	}
	return true, nil
}

// EndHere ends the value that a client of this server shows in a channel. It does nothing if there
// is none, or if it is of a newer connection of the client.
func (p *Presence) EndHere(channel, client string, generation int64) {
	h := p.lockHere(channel, false)
	if h == nil {
		return
	}
	defer h.mu.Unlock()
	if alias, _ := p.aliasOf(channel, client); alias != "" {
		holder := h.holders[alias]
		if holder.client != client || holder.generation > generation {
			return // another client of the user has set the value
		}
		client, generation = alias, registry.AliasGeneration
	}
	h.endLocked(client, generation)
}

// endHereOf ends the values of those aliases that the client which set the value no longer has.
func (p *Presence) endHereOf(channel string, aliases []string) {
	if len(aliases) == 0 {
		return
	}
	h := p.lockHere(channel, false)
	if h == nil {
		return
	}
	defer h.mu.Unlock()
	for _, alias := range aliases {
		if now, _ := p.aliasOf(channel, h.holders[alias].client); now != alias {
			h.endLocked(alias, registry.AliasGeneration)
		}
	}
}

// endAllHere ends the values of all clients of this server in a channel, and of their aliases.
func (p *Presence) endAllHere(channel string) {
	h := p.lockHere(channel, false)
	if h == nil {
		return
	}
	defer h.mu.Unlock()
	for client := range h.values {
		h.endLocked(client, registry.AliasGeneration)
	}
}

// endLocked ends the value of a client or alias of this server, unless it is newer.
func (h *hereChannel) endLocked(client string, generation int64) {
	delete(h.holders, client)
	if v := h.values[client]; v != nil && v.local && v.generation <= generation && v.latest() != nil {
		h.changeLocked(v, nil)
		h.scheduleLocked(0)
	}
}

// setHolderLocked notes which client has set the value of an alias.
func (h *hereChannel) setHolderLocked(alias string, holder hereHolder) {
	if h.holders == nil {
		h.holders = map[string]hereHolder{}
	}
	h.holders[alias] = holder
}

// LoadHere reads what SetHere needs: how many members a channel has, on which servers, and the
// client's alias, if the channel shows aliases. It calls the store, so do not call it on a loop.
func (p *Presence) LoadHere(ctx context.Context, channel, client string) error {
	if err := p.loadAlias(ctx, channel, client); err != nil {
		return err
	}
	return p.loadMembers(ctx, channel)
}

// loadMembers reads how many members a channel has, and on which servers. It calls the store,
// unless the channel has watchers on this server.
func (p *Presence) loadMembers(ctx context.Context, channel string) error {
	h, v := p.lockHereAndView(channel, true)
	if v != nil {
		h.loadFromViewLocked(v)
	}
	if unlockHere(h, v); v != nil {
		return nil
	}
	servers, err := p.opts.Store.ChannelServers(ctx, channel)
	if err != nil {
		return err
	}
	servers = without(servers, func(s string) bool { return !p.isLive(s) })
	sizes, err := p.opts.Store.RosterSizes(ctx, channel, servers)
	if err != nil {
		return err
	}
	h = p.lockHere(channel, true)
	defer h.mu.Unlock()
	h.loaded, h.clients, h.servers = time.Now(), 0, nil
	for i, server := range servers {
		h.clients += sizes[i]
		if sizes[i] > 0 && server != p.opts.ServerID() {
			h.servers = append(h.servers, server)
		}
	}
	return nil
}

// loadFromViewLocked is loadMembers for a channel with watchers on this server.
func (h *hereChannel) loadFromViewLocked(v *View) {
	self := h.p.opts.ServerID()
	h.loaded, h.clients, h.servers = time.Now(), len(v.members.clients), nil
	for server := range v.rosters {
		if server != self {
			h.servers = append(h.servers, server)
		}
	}
}

// latest returns the data of the value with the change that is not sent yet.
func (v *hereValue) latest() []byte {
	if v.unsent {
		return v.next
	}
	return v.data
}

// changeLocked sets the value of a client of this server. Nil ends it.
func (h *hereChannel) changeLocked(v *hereValue, data []byte) {
	v.next, v.local = data, true
	if !v.unsent {
		v.unsent = true
		h.unsent = append(h.unsent, v)
	}
}

// scheduleLocked has sendHere called after the given time, or earlier.
func (h *hereChannel) scheduleLocked(wait time.Duration) {
	due := time.Now().Add(max(wait, 0))
	if !h.due.IsZero() && !due.Before(h.due) {
		return
	}
	h.due = due
	if h.timer == nil {
		h.timer = time.AfterFunc(max(wait, 0), func() { h.p.sendHere(h.name) })
		return
	}
	h.timer.Reset(max(wait, 0))
}
