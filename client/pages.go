package client

import "switchboard/internal/wire"

// The reader decides what arrives (held, series), and deliver changes the view in the same order.

// holds reports whether the client has all selected fields at its position.
func (sub *subscription) holds(selector *wire.Selector) bool {
	return sub.held && sub.view.prefix == selector.Prefix
}

// missedLocked notes that changes of fields are missing. The broker sends the fields again.
func (sub *subscription) missedLocked() { sub.held, sub.series = false, 0 }

// startFieldsLocked prepares sub for the fields that follow the answer to a subscribe. continues says
// that the connection was subscribed before, and has missed nothing.
func (c *Client) startFieldsLocked(sub *subscription, asked wire.Request, ev wire.Event, continues bool) {
	if asked.StateRequest == nil {
		sub.view, sub.held, sub.series = nil, false, 0
		return
	}
	recovered := ev.Recovered != nil && *ev.Recovered
	switch prefix := asked.State.Prefix; {
	case sub.view == nil || sub.view.prefix != prefix:
		sub.view = &view{channel: sub.channel, prefix: prefix}
		sub.missedLocked()
	case !continues && !(asked.Held && recovered):
		sub.missedLocked()
	}
	if ev.ID != nil {
		v, id, reset := sub.view, *ev.ID, asked.After != nil && !recovered
		c.inbox.put(item{do: func() { v.setPosition(id, reset) }})
	}
}

// pageLocked queues a page of the series that follows a subscribe or a gap.
func (c *Client) pageLocked(ev wire.Event, size int) {
	sub, page := c.subs[ev.Channel], stateOf(ev)
	if ev.ID == nil || sub == nil || !sub.active || sub.view == nil || !page.First && *ev.ID != sub.series {
		return
	}
	if sub.held, sub.series = !ev.More, *ev.ID; sub.held {
		sub.series = 0
	}
	v, id := sub.view, *ev.ID
	c.inbox.put(item{
		message: Message{Channel: ev.Channel, ID: id}, size: size,
		do: func() { c.deliverPage(v, id, ev.More, page) },
	})
}

// deliverPage changes the view, and calls OnFields after the last page.
func (c *Client) deliverPage(v *view, id int64, more bool, page *wire.StateEvent) {
	complete, err := v.page(id, more, page)
	if err != nil {
		c.opts.Logger.Warn().Err(err).Str("channel", v.channel).Msg("fields not understood")
		c.pageFailed(v)
		return
	}
	if complete && c.opts.OnFields != nil {
		snapshot, _ := v.snapshot()
		c.opts.OnFields(snapshot)
	}
}

// pageFailed makes the next subscribe ask for the fields again.
func (c *Client) pageFailed(v *view) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if sub := c.subs[v.channel]; sub != nil && sub.view == v {
		sub.missedLocked()
	}
}
