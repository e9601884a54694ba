package hub

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
)

func (h *Hub) allChannels() []*Channel {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]*Channel, 0, len(h.channels))
	for _, c := range h.channels {
		list = append(list, c)
	}
	return list
}

// MarkAllDirty makes every channel read the store again: hints may have been lost.
func (h *Hub) MarkAllDirty() {
	for _, c := range h.allChannels() {
		c.MarkDirty()
	}
}

// Tick is the hub's housekeeping, once a second or so: channels nobody needs any more are
// unbound, idle tails give their memory back, and whoever lags is given another chance. It looks at these alone, and not
// at channels at rest.
func (h *Hub) Tick() {
	if h.drainFailed.Swap(false) {
		h.MarkAllDirty()
	}
	h.shrinkTails()
	h.refreshPositions()
	for _, c := range h.unusedChannels() {
		h.opts.Pool.Go(func() { h.unbind(c) })
	}
	for i, l := range h.opts.Loops {
		if late := &h.lagging[i]; late.count.Load() > 0 {
			l.Post(func() {
				for s := range late.list {
					s.Resume()
				}
			})
		}
	}
}

// noOnes are the channels that nobody needs.
func (h *Hub) unusedChannels() []*Channel {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.SortedFunc(maps.Keys(h.unused), func(x, y *Channel) int { return strings.Compare(x.Name, y.Name) })
}

// cool shrinks the tails that have messages.
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

// setTailLocked makes t the tail.
func (c *Channel) setTailLocked(t *tail) {
	c.tail.Store(t)
	if c.tailListed || len(t.entries) == 0 {
		return
	}
	c.tailListed = true
	c.hub.tailsMu.Lock()
	defer c.hub.tailsMu.Unlock()
	c.hub.filledTails = append(c.hub.filledTails, c)
}

// retire has whoever acquires c from now on bind it anew. It is false when somebody has it: also
// while its unbinding is under way, nobody may take a channel for bound.
func (h *Hub) markUnbound(c *Channel) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.refs > 0 {
		return false
	}
	c.bound.Store(false)
	return true
}

// shrink drops the tail's messages when none came since the last tick, and says whether there are some left.
func (c *Channel) shrinkTail() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tail.Load()
	if t.idle || len(t.entries) == 0 {
		c.tailListed = false
		c.tail.Store(t.withoutMessages())
		return false
	}
	marked := *t
	marked.idle = true
	c.tail.Store(&marked)
	return true
}

// unbind takes an unused channel out of registry and hub. When the registry cannot be
// reached the channel stays, and the next tick tries again.
func (h *Hub) unbind(c *Channel) {
	defer c.lockBinding()()
	if !h.markUnbound(c) {
		return
	}
	if c.mayBeBound {
		ctx, cancel := h.context()
		defer cancel()
		if err := h.opts.Registry.UnbindChannel(ctx, h.opts.ServerID(), c.Name); err != nil {
			h.opts.Logger.Warn().Err(err).Msg("unbind failed; the next tick tries again")
			return
		}
		c.mayBeBound = false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.refs == 0 && h.channels[c.Name] == c {
		delete(h.channels, c.Name)
		delete(h.unused, c)
	}
}

// RebindAll binds every channel again, under the server's id of now, and reads the store:
// after the store or the server was believed dead. old is an id to take out, or empty.
func (h *Hub) RebindAll(ctx context.Context, old string) error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failures []error
	for _, c := range h.allChannels() {
		wg.Add(1)
		h.opts.Pool.Go(func() {
			defer wg.Done()
			if err := c.rebind(ctx, old); err != nil {
				mu.Lock()
				failures = append(failures, err)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return errors.Join(failures[:min(len(failures), 3)]...)
}

func (c *Channel) rebind(ctx context.Context, old string) error {
	defer c.lockBinding()()
	if !c.bound.Load() {
		return nil
	}
	if old != "" {
		if err := c.hub.opts.Registry.UnbindChannel(ctx, old, c.Name); err != nil {
			return err
		}
	}
	if err := c.hub.opts.Registry.BindChannel(ctx, c.hub.opts.ServerID(), c.Name); err != nil {
		return err
	}
	c.MarkDirty()
	return nil
}

// UnbindAll takes all channels out of the registry, at the end of the process.
func (h *Hub) UnbindAll(ctx context.Context) {
	var wg sync.WaitGroup
	for _, c := range h.allChannels() {
		wg.Add(1)
		h.opts.Pool.Go(func() {
			defer wg.Done()
			_ = h.opts.Registry.UnbindChannel(ctx, h.opts.ServerID(), c.Name) // Leave and the janitor clean what stays
		})
	}
	wg.Wait()
}
