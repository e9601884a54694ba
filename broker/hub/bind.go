package hub

import (
	"context"
	"math"
	"time"

	"switchboard/internal/meter"
	"switchboard/queue"
)

// acquire binds the channel if needed and returns the position of a new subscriber. after is the
// last id that the subscriber has seen, or nil.
func (c *Channel) acquire(ctx context.Context, after *int64) (Position, error) {
	pos, ok, err := c.bindAndRead(ctx, after)
	if err != nil || ok {
		return pos, err
	}
	pos = Position{Channel: c, Recovered: true}
	if after == nil {
		pos.Cursor = c.tail.Load().last
		return pos, nil
	}
	pos.Cursor, pos.Recovered, err = c.resumeFrom(ctx, *after)
	return pos, err
}

// bindAndRead binds the channel in the registry and then reads its queue. Only the first caller
// does so; after a failure the next caller tries again. The caller that binds gets its position
// from the same read. For all other callers ok is false.
//
// One read per channel matters when 15,000 clients reconnect, each to a channel of its own. There
// used to be three reads: one for the end of the tail, one for the missed messages, and one in case
// a hint had arrived meanwhile.
func (c *Channel) bindAndRead(ctx context.Context, after *int64) (pos Position, ok bool, err error) {
	if c.bound.Load() {
		return pos, false, nil
	}
	defer c.lockBinding()()
	if c.bound.Load() {
		return pos, false, nil
	}
	// Bind before the first read. A push that does not see this server yet is in the page that is
	// read. A push that sees it sends a hint, which sets c.missed.
	c.clearMissed()
	c.mayBeBound = true // even if the call fails, it may have been executed
	if err := c.hub.opts.Registry.BindChannel(ctx, c.hub.opts.ServerID(), c.Name); err != nil {
		return pos, false, err
	}
	read := c.firstRead(after)
	o := c.hub.opts.Queue.ReadChannels(meter.With(ctx, nil), []queue.ChannelRead{read})[0]
	if o.Err != nil {
		return pos, false, o.Err
	}
	page := o.Value
	c.hub.clock.set(page.Clock)
	meter.Add(ctx, meter.Delivered(sizeOf(page.Messages)))
	c.finishBind(c.tailOf(page))
	if after == nil {
		return Position{Channel: c, Cursor: page.Last, Recovered: true}, true, nil
	}
	if !page.Complete {
		return Position{Channel: c, Cursor: page.From}, true, nil
	}
	return Position{Channel: c, Cursor: *after, Recovered: *after >= page.LastMarker}, true, nil
}

// firstRead returns the read that follows the binding. after is the last id that the subscriber
// has seen, or nil. Messages are of use only if they reach the end: else the subscriber reads them
// page by page.
func (c *Channel) firstRead(after *int64) queue.ChannelRead {
	if after == nil {
		return queue.ChannelRead{Channel: c.Name}
	}
	return queue.ChannelRead{Channel: c.Name, After: *after, Limit: pageSize, Bytes: smallPage, Reach: math.MaxInt64}
}

// clearMissed clears c.missed. A hint that arrives before the channel is bound sets it again.
func (c *Channel) clearMissed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.missed = false
}

// finishBind stores the first tail and marks the channel as bound. If a hint arrived since
// clearMissed, it starts a drain.
func (c *Channel) finishBind(t *tail) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loseFollowerLocked()
	c.tail.Store(t)
	c.boundAt = uint32(time.Since(c.hub.began) / time.Second)
	c.bound.Store(true)
	c.moveWatches()
	if t.last > 0 && c.hub.opts.PositionTTL > 0 {
		c.hub.positions.add(c)
	}
	if c.missed {
		c.markDirtyLocked()
	}
}

// tailOf returns the tail of a channel after its first read. It has the messages of the page if
// they reach the channel's end, otherwise only the position of the end.
func (c *Channel) tailOf(page queue.Page) *tail {
	end := &tail{base: page.Last, last: page.Last, lastMarker: page.LastMarker}
	n := len(page.Messages)
	if n == 0 || page.More || page.Messages[n-1].ID != page.Last {
		return end
	}
	p := c.encodePage(page)
	if t, ok := end.prepend(page.From, p.messages); ok {
		return t
	}
	return end
}

// resumeFrom returns the cursor for a subscriber that has seen all messages up to after.
func (c *Channel) resumeFrom(ctx context.Context, after int64) (cursor int64, recovered bool, err error) {
	t := c.tail.Load()
	if _, ok := t.after(after); ok && after <= t.last {
		return after, after >= t.lastMarker, nil
	}
	read := queue.ChannelRead{Channel: c.Name, After: after, Limit: pageSize, Bytes: smallPage, Reach: max(1, t.base)}
	p, own, err := c.pageAfter(read)
	meter.Add(ctx, meter.Delivered(sizeOf(own)))
	if err != nil {
		return 0, false, err
	}
	if !p.complete {
		return p.from, false, nil
	}
	c.prependToTail(after, p)
	return after, after >= p.lastMarker, nil
}
