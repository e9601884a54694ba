package client

import "switchboard/internal/wire"

// The reader decides what arrives (series), and deliver changes the view in the same order.

// series is a series of pages of the state, which arrives after a subscribe or a gap.
type series struct {
	stage stage
	id    int64
}

// stage says how much of a series has arrived.
type stage uint8

const (
	noPages   stage = iota // also after something was missed: another series follows
	somePages              // the last one is missing
	allPages
)

// holds reports whether the client has all selected fields at its position. It has not if the pages
// are newer than its position: a failover may lose the messages between them, and keep the
// position.
func (sub *subscription) holds(selector *wire.Selector) bool {
	return sub.series.stage == allPages && sub.view.prefix == selector.Prefix && sub.pos.known && sub.pos.id >= sub.series.id
}

// missedLocked notes that changes of fields are missing. The broker sends the fields again.
func (sub *subscription) missedLocked() { sub.series = series{} }

// startFieldsLocked prepares sub for the fields that follow the answer to a subscribe. continues
// says that the connection was subscribed before, and has missed nothing.
func (c *Client) startFieldsLocked(sub *subscription, asked wire.Request, ev wire.Event, continues bool) {
	if asked.StateRequest == nil {
		sub.view, sub.series = nil, series{}
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
}

// pageLocked queues a page of the series that follows a subscribe or a gap.
func (c *Client) pageLocked(ev wire.Event, size int) {
	sub, page := c.subs[ev.Channel], stateOf(ev)
	if ev.ID == nil || sub == nil || !sub.active || sub.view == nil {
		return
	}
	if !page.First && sub.series != (series{somePages, *ev.ID}) {
		return
	}
	sub.series = series{somePages, *ev.ID}
	if !ev.More {
		sub.series.stage = allPages
	}
	v, id := sub.view, *ev.ID
	c.putLocked(sub, item{
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
