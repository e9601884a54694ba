package presence

import (
	"slices"
	"time"

	"switchboard/broker/peer"
)

// sendHere sends the values of a channel that have changed to the watchers of this server, and to
// the other servers that have members.
func (p *Presence) sendHere(channel string) {
	h, v := p.lockHereAndView(channel, false)
	if h == nil {
		return
	}
	changed, post := h.takeUnsentLocked(v)
	if v != nil {
		h.loadFromViewLocked(v)
	}
	hints := hereHints{p, channel, h.servers, encodeHere(changed)}
	newServers := hereHints{p, channel, h.newServers, nil}
	if len(h.newServers) > 0 {
		newServers.bodies = encodeHere(h.localValuesLocked())
	}
	h.newServers, h.due = nil, time.Time{}
	if post {
		v.postHereLocked()
	}
	unlockHere(h, v)
	hints.notify()
	newServers.notify()
}

// takeUnsentLocked returns the values that have changed, with new numbers. post reports whether
// the watchers of this server have something to receive.
func (h *hereChannel) takeUnsentLocked(v *View) (changed []*hereValue, post bool) {
	changed = h.unsent
	if h.unsent = nil; len(changed) == 0 {
		return nil, false
	}
	h.lastSend = time.Now()
	for _, value := range changed {
		next := value.next
		if value.unsent, value.next = false, nil; value.local { // otherwise a newer connection of the client is on another server
			value.number = max(value.number+1, h.lastSend.UnixMilli()) // also above a number that this server has forgotten
			value.data, value.refreshed = next, h.p.here.now()
			post = h.showLocked(v, value, true) || post
		}
	}
	return slices.DeleteFunc(changed, func(value *hereValue) bool { return !value.local }), post
}

// localValuesLocked returns the values of this server's clients that were sent before, ended ones
// included: the hint of an end may have been lost.
func (h *hereChannel) localValuesLocked() (list []*hereValue) {
	for _, v := range h.values {
		if v.local && !v.unsent {
			list = append(list, v)
		}
	}
	return list
}

// hereHints are hints with the values of one channel.
type hereHints struct {
	p       *Presence
	channel string
	servers []string
	bodies  [][]byte
}

// notify sends the hints. Do not call it with a lock held.
func (h hereHints) notify() {
	for _, server := range h.servers {
		for _, body := range h.bodies {
			h.p.opts.Notify(server, peer.Hint{Kind: peer.Here, Name: h.channel, Data: body})
		}
	}
}

// tickHere does the housekeeping of all here values.
func (p *Presence) tickHere() {
	if p.here.count.Load() == 0 {
		return
	}
	p.here.mu.Lock()
	names := make([]string, 0, len(p.here.channels))
	for name := range p.here.channels {
		names = append(names, name)
	}
	p.here.mu.Unlock()
	for _, name := range names {
		if h, v := p.lockHereAndView(name, false); h != nil {
			h.tickLocked(v)
			unlockHere(h, v)
		}
	}
}

// tickLocked ends the values that were not refreshed for hereTTL, and removes ended ones after the
// same time. It starts to send the values of this server's clients again.
func (h *hereChannel) tickLocked(v *View) {
	now, post, hasLocal := h.p.here.now(), false, false
	for client, value := range h.values {
		if v == nil {
			value.forgetShown()
		}
		expired := now-value.refreshed >= hereTTL && !value.unsent
		switch {
		case value.local && (value.data != nil || !expired):
			hasLocal = true
		case expired && value.data == nil:
			delete(h.values, client)
			if v != nil {
				v.hereForgotten = max(v.hereForgotten, value.seq)
			}
			continue
		case expired:
			value.data, value.refreshed = nil, now
		}
		post = h.showLocked(v, value, false) || post // also after the channel was large
	}
	if post {
		v.postHereLocked()
	}
	if h.ticks++; hasLocal && h.ticks%hereResend == 0 {
		h.p.opts.Pool.Go(func() { h.p.resendHere(h.name) })
	}
	h.removeIfUnusedLocked()
}

// resendHere sends the values of this server's clients in a channel again. If the channel has
// become large, it ends them instead.
func (p *Presence) resendHere(channel string) {
	ctx, cancel := p.context()
	defer cancel()
	err := p.loadMembers(ctx, channel)
	h := p.lockHere(channel, false)
	if h == nil {
		return
	}
	if err != nil {
		p.opts.Logger.Warn().Err(err).Msg("here values: the members of the channel were not read; the next round tries again")
		h.loaded = time.Now() // keep the members that were read before
	}
	values := h.localValuesLocked()
	if h.clients > p.opts.LargeChannel {
		for _, value := range values {
			if value.latest() != nil {
				h.changeLocked(value, nil)
				h.scheduleLocked(0)
			}
		}
		values = nil
	}
	hints := hereHints{p, channel, h.servers, encodeHere(values)}
	h.mu.Unlock()
	hints.notify()
}
