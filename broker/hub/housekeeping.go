package hub

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"switchboard/queue"
)

// allChannels returns a copy of the channel list.
func (h *Hub) allChannels() []*Channel {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]*Channel, 0, len(h.channels))
	for _, c := range h.channels {
		list = append(list, c)
	}
	return list
}

// Tick does the housekeeping; call it about once a second. It repeats reads that failed, unbinds
// unused channels, frees idle tails and retries subscribers that lag. Its cost does not depend on
// the number of idle channels.
func (h *Hub) Tick() {
	h.retry()
	h.lastPage.Store(nil)
	h.shrinkTails()
	h.refreshPositions()
	for _, c := range h.unusedChannels() {
		h.opts.Pool.Go(func() { h.unbind(c) })
	}
	for i, l := range h.opts.Loops {
		if state := &h.loops[i]; state.laggingCount.Load() > 0 {
			l.Post(func() {
				for s := range state.lagging {
					s.Resume()
				}
			})
		}
	}
}

// unusedChannels returns the channels without references, by name.
func (h *Hub) unusedChannels() []*Channel {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.SortedFunc(maps.Keys(h.unused), func(x, y *Channel) int { return strings.Compare(x.Name, y.Name) })
}

// shrinkTails calls shrinkTail for each channel whose tail has messages.
func (h *Hub) shrinkTails() {
	h.tailsMu.Lock()
	list := h.filledTails
	h.filledTails = nil
	h.tailsMu.Unlock()
	list = slices.DeleteFunc(list, func(c *Channel) bool { return !c.shrinkTail() })
	h.tailsMu.Lock()
	h.filledTails = append(list, h.filledTails...)
	h.tailsMu.Unlock()
}

// setTailLocked replaces the tail and lists the channel in hub.filledTails if it has messages.
func (c *Channel) setTailLocked(t *tail) {
	c.tail.Store(t)
	if c.tailListed || len(t.messages) == 0 {
		return
	}
	c.tailListed = true
	c.hub.tailsMu.Lock()
	defer c.hub.tailsMu.Unlock()
	c.hub.filledTails = append(c.hub.filledTails, c)
}

// markUnbound makes the next Acquire bind c again. It returns false if c is in use. It must be
// called before UnbindChannel, so that no caller relies on the binding meanwhile.
func (h *Hub) markUnbound(c *Channel) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.refs > 0 {
		return false
	}
	c.bound.Store(false)
	return true
}

// shrinkTail drops the tail's messages if none arrived since the last tick. It reports whether
// messages are left.
func (c *Channel) shrinkTail() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tail.Load()
	if t.idle || len(t.messages) == 0 {
		c.tailListed = false
		c.tail.Store(t.withoutMessages())
		return false
	}
	next := *t
	next.idle = true
	c.tail.Store(&next)
	return true
}

// unbind removes an unused channel from the registry and the hub. If the registry cannot be
// reached, the channel stays and the next tick tries again.
func (h *Hub) unbind(c *Channel) {
	defer c.lockBinding()()
	if !h.markUnbound(c) {
		return
	}
	c.loseFollower()
	if c.mayBeBound {
		ctx := h.context()
		if err := h.opts.Registry.UnbindChannel(ctx, h.opts.ServerID(), c.Name); err != nil {
			h.opts.Logger.Warn().Err(err).Msg("unbind failed; the next tick tries again")
			if queue.OutcomeUnknown(err) {
				h.opts.Uncertain(c.Name)
			}
			return
		}
		c.mayBeBound = false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.refs == 0 && h.channels[c.Name] == c {
		delete(h.channels, c.Name)
		delete(h.unused, c)
		h.countChannelLocked(c, -1)
	}
}

// UnbindAll removes all channels from the registry. It is called when the process ends.
func (h *Hub) UnbindAll(ctx context.Context) {
	var wg sync.WaitGroup
	for _, c := range h.allChannels() {
		wg.Add(1)
		h.opts.Pool.Go(func() {
			defer wg.Done()
			_ = h.opts.Registry.UnbindChannel(ctx, h.opts.ServerID(), c.Name) // Registry.Leave and the janitor remove the rest
		})
	}
	wg.Wait()
}
