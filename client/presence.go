package client

import (
	"encoding/json"
	"fmt"
	"time"

	"switchboard/internal/wire"
)

// Member is a client in the presence of a channel. In a channel that shows aliases, such as a room,
// Client is the alias of a user, and stands for all clients of the user; there is no User and Info.
type Member = wire.Member

// Presence reports the other clients that have entered or left a channel. Apply Left before Joined:
// a client that came back as another user is in both. After Members, an event may repeat what a
// page shows.
type Presence struct {
	Channel string
	Joined  []Member
	Left    []Member
	// All is not nil if the client may have missed changes: it holds all present clients, instead
	// of Joined and Left.
	All []Member
	// Count is the number of present clients, in a large channel or with All, else 0. Joined and
	// Left of a large channel may be incomplete.
	Count int
}

// Here is what another client shows in a channel, see Client.ShowHere.
type Here struct {
	Channel string
	Client  string // see Member
	User    string
	Data    json.RawMessage // nil when the client no longer shows anything
}

// presenceLocked queues a join, a leave or a presence for OnPresence.
func (c *Client) presenceLocked(ev wire.Event, size int) {
	sub := c.subs[ev.Channel]
	if sub == nil || !sub.active || c.opts.OnPresence == nil {
		return
	}
	p := Presence{Channel: ev.Channel, Joined: ev.Joined, Left: ev.Left}
	one := []Member{{Client: ev.Client, User: ev.User, Info: ev.Info}}
	switch ev.Type {
	case wire.TypeJoin:
		p.Joined = one
	case wire.TypeLeave:
		p.Left = one
	}
	if ev.Count != nil {
		p.Count = *ev.Count
	}
	if ev.Clients != nil {
		p.All = append([]Member{}, *ev.Clients...)
	}
	c.inbox.put(item{message: Message{Channel: ev.Channel}, size: size, do: func() { c.opts.OnPresence(p) }})
}

// hereLocked queues a value for OnHere.
func (c *Client) hereLocked(ev wire.Event, size int) {
	sub := c.subs[ev.Channel]
	if sub == nil || !sub.active || c.opts.OnHere == nil {
		return
	}
	h := Here{Channel: ev.Channel, Client: ev.Client, User: ev.User, Data: ev.Data}
	if isNull(h.Data) {
		h.Data = nil
	}
	c.inbox.put(item{message: Message{Channel: ev.Channel}, size: size, do: func() { c.opts.OnHere(h) }})
}

func isNull(data json.RawMessage) bool { return len(data) == 0 || string(data) == "null" }

// hereEvery is the least time between two values that the client shows in one channel. The broker
// would drop more of them.
const hereEvery = 50 * time.Millisecond

// maxHere is the longest value of ShowHere, in bytes of JSON.
const maxHere = 1 << 10

// shown is what this client shows in one channel.
type shown struct {
	data    json.RawMessage // "null" ends it
	due     bool            // data was not written on this connection
	waiting bool            // a timer sets due
	written time.Time       // when a value was written last
}

// ShowHere shows a value to the clients in a channel that have subscribed with Presence: a cursor,
// or that the user is typing. It needs a subscription. The value is encoded as JSON, at most 1 KiB,
// and is never stored; nil ends it, and so does Unsubscribe.
//
// ShowHere does not wait. It sends at most one value per 50 ms, always the newest, and sends it
// again after a reconnect. If the broker refuses the value, that is only logged.
func (c *Client) ShowHere(channel string, value any) error {
	if err := checkChannel(channel); err != nil {
		return err
	}
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("here in %s: %w", channel, err)
	}
	if len(data) > maxHere {
		return wire.Errorf(wire.TooLarge, "here in %s: the value has %d bytes, at most %d are allowed", channel, len(data), maxHere)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped != nil {
		return c.stopped
	}
	h := c.shown[channel]
	if h == nil {
		h = new(shown)
		c.shown[channel] = h
	}
	h.data = data
	if wait := hereEvery - time.Since(h.written); wait > 0 && !h.waiting {
		h.waiting = true
		time.AfterFunc(wait, func() { c.showAfterWait(h) })
	} else if wait <= 0 {
		c.showLocked(h)
	}
	return nil
}

func (c *Client) showAfterWait(h *shown) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.waiting = false
	c.showLocked(h)
}

func (c *Client) showLocked(h *shown) {
	h.due = true
	if c.session != nil {
		c.session.signal()
	}
}

// takeShownLocked returns the values to write now.
func (c *Client) takeShownLocked() (reqs []wire.Request) {
	for channel, h := range c.shown {
		if !h.due {
			continue
		}
		reqs = append(reqs, wire.Request{Type: wire.TypeHere, Channel: channel, Data: h.data})
		h.due, h.written = false, time.Now()
		if isNull(h.data) {
			delete(c.shown, channel)
		}
	}
	return reqs
}

// showAgainLocked makes a new connection send all values.
func (c *Client) showAgainLocked() {
	for _, h := range c.shown {
		h.due = true
	}
}
