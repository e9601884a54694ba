package hub

import (
	"context"
	"slices"
	"strings"
	"time"

	"switchboard/broker/work"
	"switchboard/queue"
)

// comparedPerCall is how many channels one store call compares.
const comparedPerCall = 128

// Compare finds the channels in which the store has messages that the tail does not have, because
// hints may have been lost, and reads only these. The calls are spread over pace. What could not be
// compared is compared again by later ticks; Compare returns the first error.
func (h *Hub) Compare(ctx context.Context, pace time.Duration) error {
	return h.compare(ctx, h.allChannels(), pace)
}

// CompareStates is Compare for the channels with state subscribers.
func (h *Hub) CompareStates(ctx context.Context, pace time.Duration) error {
	list := h.allChannels()
	withState := list[:0]
	for _, c := range list {
		if c.filters.Load() != nil {
			withState = append(withState, c)
		}
	}
	return h.compare(ctx, withState, pace)
}

func (h *Hub) compare(ctx context.Context, list []*Channel, pace time.Duration) error {
	var first work.FirstError
	part := work.PartOf(h.opts.Master, func(c *Channel) string { return c.Name })
	work.InParts(ctx, list, part, comparedPerCall, pace, func(chunk []*Channel) (answers bool) {
		return !work.TimedOut(first.Note(h.compareChunk(ctx, chunk)))
	}, func(c *Channel) { h.comparisons.Failed(c.Name) })
	return first.Err()
}

// compareChunk compares channels with one store call.
func (h *Hub) compareChunk(ctx context.Context, chunk []*Channel) (first error) {
	slices.SortFunc(chunk, func(x, y *Channel) int { return strings.Compare(x.Name, y.Name) }) // a simulation repeats it
	list, known := make([]*Channel, 0, len(chunk)), make([]queue.ChannelKnown, 0, len(chunk))
	for _, c := range chunk {
		if k, ok := c.known(); ok {
			list, known = append(list, c), append(known, k)
		} else {
			h.comparisons.Done(c.Name)
		}
	}
	if len(list) == 0 {
		return nil
	}
	for i, o := range h.opts.Queue.ChannelHeads(ctx, known) {
		if o.Err != nil {
			h.comparisons.Failed(list[i].Name)
			if first == nil {
				first = o.Err
			}
			continue
		}
		list[i].compare(known[i].ID, o.Value)
		h.comparisons.Done(list[i].Name)
	}
	return first
}

// known returns what the tail has. ok is false for a channel that will be read in any case.
func (c *Channel) known() (known queue.ChannelKnown, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.bound.Load() {
		c.missed = true
		return known, false
	}
	last := c.tail.Load().last
	return queue.ChannelKnown{Channel: c.Name, ID: last, Empty: last == c.emptyAt}, !c.dirty
}

// compare marks the channel dirty if the store has another end than the tail. known was the end of
// the tail before the store was asked. A tail that was extended meanwhile has no gap: it may be
// ahead of the answer. But a store that is behind known has lost messages.
func (c *Channel) compare(known int64, head queue.ChannelHead) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if head.Empty {
		c.emptyAt = head.ID
	}
	if head.ID > c.tail.Load().last || head.ID < known {
		c.markDirtyLocked()
	}
}

// retry repeats the reads and comparisons that failed, each with pauses of its own.
func (h *Hub) retry() {
	for _, name := range h.drains.Tick() {
		if c := h.Channel(name); c == nil || !c.retryDrain() {
			h.drains.Done(name)
		}
	}
	var list []*Channel
	for _, name := range h.comparisons.Tick() {
		if c := h.Channel(name); c != nil {
			list = append(list, c)
		} else {
			h.comparisons.Done(name)
		}
	}
	if len(list) == 0 {
		return
	}
	h.opts.Pool.Go(func() {
		if err := h.compare(h.context(), list, 0); err != nil {
			h.opts.Logger.Warn().Err(err).Msg("channels not compared; a later tick tries again")
		}
	})
}

// retryDrain reads the store again after a drain has failed. It returns false if the channel is not
// bound: the next subscriber binds and reads it.
func (c *Channel) retryDrain() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.markDirtyLocked()
	return c.bound.Load()
}
