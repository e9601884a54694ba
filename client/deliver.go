package client

import (
	"context"
	"time"
)

const (
	// ackEvery is how many messages of the client queue one acknowledgement may stand for.
	// The broker leaves at most 256 unacknowledged on the way, so it never runs dry.
	ackEvery = 64
	// ackWithin is how long one may be held back while more messages wait.
	ackWithin = 100 * time.Millisecond
)

// acks counts what one acknowledgement will stand for.
type acks struct {
	owed  int
	since time.Time // of the first owed
}

// deliver calls the callbacks, one after another. What waits when ctx ends stays
// undelivered and unacknowledged.
func (c *Client) deliver(ctx context.Context) {
	var batch []item
	var pending acks
	for {
		clear(batch)
		batch = c.inbox.take(ctx, batch[:0])
		if len(batch) == 0 {
			return
		}
		for i := range batch {
			if ctx.Err() != nil {
				return
			}
			c.deliverOne(&batch[i])
			c.settle(&batch[i], &pending, i == len(batch)-1)
			c.inbox.release(batch[i].size)
		}
	}
}

func (c *Client) deliverOne(it *item) {
	switch {
	case it.do != nil:
		it.do()
	case c.opts.OnMessage != nil:
		c.opts.OnMessage(it.message)
	}
}

// settle notes that an item of the client queue is done with, and asks for an
// acknowledgement when enough of them are, when the oldest has waited long enough, or
// when nothing else is there to do.
func (c *Client) settle(it *item, pending *acks, last bool) {
	if it.queued() && c.done(it) {
		if pending.owed++; pending.owed == 1 {
			pending.since = time.Now()
		}
	}
	if pending.owed == 0 || !last && pending.owed < ackEvery && time.Since(pending.since) < ackWithin {
		return
	}
	pending.owed = 0
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session != nil && !c.opts.AutoAck {
		c.session.ackDue = true
		c.session.signal()
	}
}

// done moves the position up to which callbacks have returned. An item from before a
// reset does not: its id says nothing about the ids that the broker assigns now.
func (c *Client) done(it *item) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if it.epoch != c.epoch {
		return false
	}
	c.handled = max(c.handled, it.message.ID)
	return true
}
