package hub

import (
	"context"

	"switchboard/internal/meter"
	"switchboard/queue"
)

// PrefetchRequest names a channel that a client is about to subscribe to.
type PrefetchRequest struct {
	Name  string
	After *int64 // the last id that the client has seen, or nil
	// Read counts what is read for the client, as Acquire does. Nil counts nothing.
	Read *meter.Meter
}

// Prefetch binds and reads several channels with as few store calls as Acquire needs for one. The
// result has one channel for each request. TryAcquire now succeeds for it, unless more messages
// follow After than one read returns. The caller passes each channel once to Release.
//
// The result is nil for a channel that another goroutine is binding, for one whose messages after
// After must be read from the store, and for one that failed. Use Acquire for these.
func (h *Hub) Prefetch(ctx context.Context, requests []PrefetchRequest) []*Channel {
	ready := make([]*Channel, len(requests))
	var fresh []int // indexes of the channels that are bound here
	for i, r := range requests {
		if pos, ok := h.TryAcquire(r.Name, r.After); ok {
			ready[i] = pos.Channel
			continue
		}
		c := h.getOrCreate(r.Name)
		if !c.tryLockBinding() {
			h.Release(c)
			continue
		}
		ready[i], fresh = c, append(fresh, i)
	}
	if len(fresh) > 0 {
		h.bindBatch(ctx, requests, ready, fresh)
	}
	return ready
}

// tryLockBinding locks bindLock if it is free and the channel is not bound.
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

// bindBatch does what Channel.bindAndRead does, in the same order, for the channels at the indexes
// fresh. It sets the ones that fail to nil in ready.
func (h *Hub) bindBatch(ctx context.Context, requests []PrefetchRequest, ready []*Channel, fresh []int) {
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
		bound, reads = append(bound, i), append(reads, ready[i].firstRead(requests[i].After))
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
		requests[i].Read.Add(meter.Delivered(sizeOf(o.Value.Messages)))
		ready[i].finishBind(ready[i].tailOf(o.Value))
	}
}
