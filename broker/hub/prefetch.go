package hub

import (
	"context"

	"switchboard/queue"
)

// PrefetchRequest is a channel that somebody is about to subscribe to.
type PrefetchRequest struct {
	Name  string
	After *int64 // the last id that he has seen, nil for none
}

// Prefetch is Acquire for many channels in as few calls to the store as for one. It holds those for which Try now needs no store,
// until they are given to Release; of the others, which somebody else is about to bind, or where the store must be
// asked for what lies behind After, or failed, it returns nil.
func (h *Hub) Prefetch(ctx context.Context, wants []PrefetchRequest) []*Channel {
	ready := make([]*Channel, len(wants))
	var fresh []int // places of those that are bound here
	for i, w := range wants {
		if pos, ok := h.TryAcquire(w.Name, w.After); ok {
			ready[i] = pos.Channel
			continue
		}
		c := h.hold(w.Name)
		if !c.tryLockBinding() {
			h.Release(c)
			continue
		}
		ready[i], fresh = c, append(fresh, i)
	}
	if len(fresh) > 0 {
		h.bindBatch(ctx, wants, ready, fresh)
	}
	return ready
}

// tryBindingTurn takes the place in binding if it is free, of a channel that is not bound.
func (c *Channel) tryLockBinding() bool {
	select {
	case c.bindLock <- struct{}{}:
	default:
		return false
	}
	if c.bound.Load() {
		<-c.bindLock
		return false
	}
	return true
}

// bindAll is what Channel.ready does, in the same order, for all of fresh. What failed is taken out of ready.
func (h *Hub) bindBatch(ctx context.Context, wants []PrefetchRequest, ready []*Channel, fresh []int) {
	names := make([]string, len(fresh))
	for k, i := range fresh {
		c := ready[i]
		defer func() { <-c.bindLock }()
		c.clearMissed()
		c.mayBeBound = true
		names[k] = c.Name
	}
	var bound []int
	var reads []queue.ChannelRead
	for k, err := range h.opts.Registry.BindChannels(ctx, h.opts.ServerID(), names) {
		i := fresh[k]
		if err != nil {
			h.Release(ready[i])
			ready[i] = nil
			continue
		}
		bound, reads = append(bound, i), append(reads, ready[i].firstRead(wants[i].After))
	}
	if len(bound) == 0 {
		return
	}
	for k, o := range h.opts.Queue.ReadChannels(ctx, reads) {
		i := bound[k]
		if o.Err != nil {
			h.Release(ready[i])
			ready[i] = nil
			continue
		}
		h.clock.set(o.Value.Clock)
		ready[i].finishBind(tailOf(ready[i].Name, o.Value))
	}
}
