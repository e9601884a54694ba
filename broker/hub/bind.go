package hub

import (
	"context"

	"switchboard/queue"
)

// position is where a subscriber begins that has seen everything up to after, nil for nothing.
func (c *Channel) acquire(ctx context.Context, after *int64) (Position, error) {
	pos, known, err := c.bindAndRead(ctx, after)
	if err != nil || known {
		return pos, err
	}
	pos = Position{Channel: c, Recovered: true}
	if after == nil {
		pos.Cursor = c.tail.Load().last
		return pos, nil
	}
	pos.Cursor, pos.Recovered, err = c.resumeFrom(*after)
	return pos, err
}

// ready binds the channel in the registry and reads it, once; after a failure the next caller tries again. Who
// binds it learns his own position by the same read; known is false for all others. Of 15,000 that come back, each to
// a channel of its own, each asks the store for its channel once: it was three times, with a read
// for the tail's end, one for what was missed, and one in case that a hint had come meanwhile.
func (c *Channel) bindAndRead(ctx context.Context, after *int64) (pos Position, known bool, err error) {
	if c.bound.Load() {
		return pos, false, nil
	}
	defer c.lockBinding()()
	if c.bound.Load() {
		return pos, false, nil
	}
	// From here on whatever is told of the channel counts. Bind before the first read: a push that does not
	// see us yet is in what we read, and the hint of one that does is noted.
	c.clearMissed()
	c.mayBeBound = true // also when it fails: the call may have been executed
	if err := c.hub.opts.Registry.BindChannel(ctx, c.hub.opts.ServerID(), c.Name); err != nil {
		return pos, false, err
	}
	read := c.firstRead(after)
	page, err := c.hub.opts.Queue.ReadChannel(ctx, read.Channel, read.After, read.Limit)
	if err != nil {
		return pos, false, err
	}
	c.hub.clock.set(page.Clock)
	c.finishBind(tailOf(c.Name, page))
	if after == nil {
		return Position{Channel: c, Cursor: page.Last, Recovered: true}, true, nil
	}
	if !page.Complete {
		return Position{Channel: c, Cursor: page.From}, true, nil
	}
	return Position{Channel: c, Cursor: *after, Recovered: *after >= page.Hole}, true, nil
}

// firstRead is what is read of a channel that is bound for somebody who has seen everything up to after.
func (c *Channel) firstRead(after *int64) queue.ChannelRead {
	if after == nil {
		return queue.ChannelRead{Channel: c.Name}
	}
	return queue.ChannelRead{Channel: c.Name, After: *after, Limit: pageSize}
}

// expect has the hints count that come before the channel is bound.
func (c *Channel) clearMissed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.missed = false
}

// begin is the end of expect: t is what the store held.
func (c *Channel) finishBind(t *tail) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tail.Store(t)
	c.bound.Store(true)
	if t.last > 0 && c.hub.opts.PositionTTL > 0 {
		c.hub.positions.add(c)
	}
	if c.missed {
		c.markDirtyLocked()
	}
}

// firstTail is the tail of a channel that was just read: with the messages if they reach to its end, else only
// that end.
func tailOf(channel string, page queue.Page) *tail {
	end := &tail{base: page.Last, last: page.Last, hole: page.Hole}
	n := len(page.Messages)
	if n == 0 || page.More || page.Messages[n-1].ID != page.Last {
		return end
	}
	p := encodePage(channel, page)
	if t, ok := end.prepend(page.From, p.entries); ok {
		return t
	}
	return end
}

// recover is the cursor for a subscriber that has seen everything up to after.
func (c *Channel) resumeFrom(after int64) (cursor int64, recovered bool, err error) {
	t := c.tail.Load()
	if _, ok := t.after(after); ok && after <= t.last {
		return after, after >= t.hole, nil
	}
	p, err := c.pageAfter(after)
	if err != nil {
		return 0, false, err
	}
	if !p.complete {
		return p.from, false, nil
	}
	c.prependToTail(after, p)
	return after, after >= p.hole, nil
}
