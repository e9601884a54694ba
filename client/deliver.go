package client

import (
	"context"
	"time"
)

const (
	// ackEvery is the most messages of the client queue that one acknowledgement covers. The broker
	// sends up to 256 without acknowledgement, so it does not have to wait.
	ackEvery = 64
	// ackWithin is how long an acknowledgement may be delayed while more messages wait.
	ackWithin = 100 * time.Millisecond
)

// acks counts the messages that the next acknowledgement covers.
type acks struct {
	count int
	since time.Time // when the first of them was handled
}

// deliver calls the callbacks, one after another. Items that still wait when ctx ends are neither
// delivered nor acknowledged.
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
			c.finishItem(&batch[i], &pending, i == len(batch)-1)
			c.inbox.release(batch[i].size)
		}
	}
}

func (c *Client) deliverOne(it *item) {
	switch {
	case it.do != nil:
		it.do()
		return
	case it.view != nil: // the message changes fields
		it.message.Changes = it.view.message(it.message.ID, it.state)
		if it.loaded { // the data of Load already has it
			it.message.Data = nil
		}
		if it.message.Data == nil && it.message.Changes == nil && (it.state.Erase == 0 || it.loaded) {
			return
		}
	}
	if it.state != nil && it.state.Erase != 0 && !it.loaded {
		if c.opts.OnErase != nil {
			c.opts.OnErase(Erased{Channel: it.message.Channel, ID: it.state.Erase})
		}
		return
	}
	if c.opts.OnMessage != nil {
		c.opts.OnMessage(it.message)
	}
}

// finishItem notes that the callback for it has returned. It requests an acknowledgement if
// ackEvery messages are handled, if the oldest of them has waited for ackWithin, or if it is the
// last item of the batch.
func (c *Client) finishItem(it *item, pending *acks, last bool) {
	if it.ofClientQueue() && c.markHandled(it) {
		if pending.count++; pending.count == 1 {
			pending.since = time.Now()
		}
	}
	if pending.count == 0 || !last && pending.count < ackEvery && time.Since(pending.since) < ackWithin {
		return
	}
	pending.count = 0
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session != nil && !c.opts.AutoAck {
		c.session.ackDue = true
		c.session.signal()
	}
}

// markHandled advances c.handled. It returns false for an item from before a reset of the queue,
// whose id is not comparable with the current ids.
func (c *Client) markHandled(it *item) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if it.epoch != c.epoch {
		return false
	}
	c.handled = max(c.handled, it.message.ID)
	return true
}
