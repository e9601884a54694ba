package client

import (
	"context"
	"fmt"
	"time"

	"switchboard/internal/wire"
)

// SubscribeOptions say from where a subscription starts.
type SubscribeOptions struct {
	// After is the last id that the caller has seen; 0 is the very beginning. Zero means
	// from now on, or, where the channel is subscribed already, that it just goes on.
	After *int64
}

// Subscription is what a Subscribe has come to.
type Subscription struct {
	Channel string
	// ID is the position that it starts from.
	ID int64
	// Recovered is false when messages between After and now are missing; OnGap is told
	// as well. It is true where no After was given.
	Recovered bool
}

// position is the last id seen of one queue.
type position struct {
	id    int64
	known bool
}

// pass reports whether id is new, and moves to it.
func (p *position) pass(id int64) bool {
	if p.known && id <= p.id {
		return false
	}
	*p = position{id: id, known: true}
	return true
}

func (p position) after() *int64 {
	if !p.known {
		return nil
	}
	return new(p.id)
}

// subscription is one channel that is wanted.
type subscription struct {
	channel string
	pos     position
	// active: this connection has answered `subscribed`. What comes for the channel before
	// that belongs to an earlier subscription, and comes again.
	active      bool
	established bool    // some connection has answered
	pending     *call   // the subscribe on its way
	retry       backoff // between refusals that may pass
}

// Subscribe asks for a channel. The messages after SubscribeOptions.After follow, then
// whatever comes, over all reconnects until Unsubscribe. The errors are a *Error where
// the broker refuses, and that of ctx: then the channel stays wanted.
func (c *Client) Subscribe(ctx context.Context, channel string, opts SubscribeOptions) (Subscription, error) {
	if err := checkChannel(channel); err != nil {
		return Subscription{}, err
	}
	c.mu.Lock()
	sub := c.subs[channel]
	if sub != nil && sub.active && opts.After == nil && c.stopped == nil {
		defer c.mu.Unlock()
		return Subscription{Channel: channel, ID: sub.pos.id, Recovered: true}, nil
	}
	call := c.wantLocked(channel, opts.After)
	c.mu.Unlock()
	ev, err := c.await(ctx, call)
	if err != nil {
		return Subscription{}, fmt.Errorf("subscribe to %s: %w", channel, err)
	}
	got := Subscription{Channel: channel, Recovered: ev.Recovered == nil || *ev.Recovered}
	if ev.ID != nil {
		got.ID = *ev.ID
	}
	return got, nil
}

// checkChannel refuses what the broker would, and the one channel that is always there.
func checkChannel(channel string) error {
	if channel == wire.AllChannel {
		return wire.Errorf(wire.BadRequest, "channel: every client follows %s as it is", channel)
	}
	return wire.CheckName("channel", channel)
}

// wantLocked makes channel wanted and returns the call that asks for it: one that is on
// its way already, unless the position differs.
func (c *Client) wantLocked(channel string, after *int64) *call {
	sub := c.subs[channel]
	if sub == nil {
		sub = &subscription{
			channel: channel,
			retry:   backoff{min: c.opts.BackoffMin, max: c.opts.BackoffMax},
		}
		c.subs[channel] = sub
	}
	if sub.pending != nil && after == nil {
		sub.pending.unattended = false
		return sub.pending
	}
	if after != nil {
		sub.pos, sub.active = position{id: *after, known: true}, false
	}
	return c.askLocked(sub)
}

// askLocked submits a subscribe from the position of sub.
func (c *Client) askLocked(sub *subscription) *call {
	call := c.submitLocked(wire.Request{Type: wire.TypeSubscribe, Channel: sub.channel, After: sub.pos.after()})
	call.sub = sub
	if c.stopped == nil {
		sub.pending = call
	}
	return call
}

// resubscribeLocked asks for sub in nobody's name.
func (c *Client) resubscribeLocked(sub *subscription) {
	call := &call{
		ref: c.refLocked(), sub: sub, done: make(chan struct{}), unattended: true,
		req: wire.Request{Type: wire.TypeSubscribe, Channel: sub.channel},
	}
	call.req.Ref = wire.RefOf(call.ref)
	c.calls[call.ref], sub.pending = call, call
}

// subscribedLocked makes the subscription of call active.
func (c *Client) subscribedLocked(call *call, ev wire.Event) {
	sub := call.sub
	if sub.pending != call {
		return // a later Subscribe asked from elsewhere, or the channel is no longer wanted
	}
	sub.pending, sub.active, sub.established = nil, true, true
	sub.retry.reset()
	c.startLocked(sub, call.req.After, ev)
}

// startLocked sets the position that an answer starts from. Where `after` was recovered,
// that is `after` itself; where not, it is the id in the answer, and that may be lower
// than what was seen: after a failover the ids start again from there.
func (c *Client) startLocked(sub *subscription, asked *int64, ev wire.Event) {
	lost := asked != nil && ev.Recovered != nil && !*ev.Recovered
	if ev.ID == nil || asked != nil && !lost {
		return
	}
	sub.pos = position{id: *ev.ID, known: true}
	if lost && *ev.ID != *asked { // else the gap comes in its place among the messages
		c.tellGapLocked(Gap{Channel: sub.channel, After: *asked, ID: *ev.ID})
	}
}

// refuseLocked gives an error to a call. A refusal that may pass does not end what was
// subscribed before: it is asked for again after a while.
func (c *Client) refuseLocked(ctx context.Context, s *session, call *call, err *Error) {
	c.resolveLocked(call, wire.Event{}, err)
	sub := call.sub
	if sub == nil || sub.pending != call {
		return
	}
	sub.pending = nil
	kept := call.unattended || sub.established
	if kept && passing(err) {
		c.resubscribeLocked(sub)
		again, after := sub.pending, sub.retry.next()
		s.wg.Go(func() { s.retry(ctx, again, after) })
		return
	}
	if !kept {
		delete(c.subs, sub.channel)
		return
	}
	c.lostLocked(sub, err)
}

// expelledLocked is the broker's word that a channel is not allowed any more. A subscribe for it that is under way
// has an answer of its own.
func (c *Client) expelledLocked(ev wire.Event) {
	if sub := c.subs[ev.Channel]; sub != nil && sub.active && sub.pending == nil {
		c.lostLocked(sub, wire.Errorf(wire.ErrorCode(ev.Code), "%s", ev.Message))
	}
}

// lostLocked gives up a channel that the broker refuses.
func (c *Client) lostLocked(sub *subscription, err *Error) {
	delete(c.subs, sub.channel)
	c.opts.Logger.Warn().Err(err).Str("channel", sub.channel).Msg("subscription lost")
	if c.opts.OnUnsubscribed != nil {
		c.inbox.put(item{do: func() { c.opts.OnUnsubscribed(sub.channel, err) }})
	}
}

// retry sends a subscribe after a while, if it is still what is wanted.
func (s *session) retry(ctx context.Context, call *call, after time.Duration) {
	if !pause(ctx, after) {
		return
	}
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	call.req.After = call.sub.pos.after()
	s.sendLocked(outgoing{req: call.req, call: call})
}

// Unsubscribe gives up a channel. It is done for this client at once: no message of the
// channel reaches OnMessage that was not on its way there. The answer confirms that the
// broker knows.
func (c *Client) Unsubscribe(ctx context.Context, channel string) error {
	if err := checkChannel(channel); err != nil {
		return err
	}
	c.mu.Lock()
	sub := c.subs[channel]
	if sub != nil {
		delete(c.subs, channel)
		if sub.pending != nil {
			pending := sub.pending
			sub.pending = nil
			c.resolveLocked(pending, wire.Event{}, ErrUnsubscribed)
		}
	}
	if sub == nil || c.session == nil {
		c.mu.Unlock()
		return nil
	}
	call := c.submitLocked(wire.Request{Type: wire.TypeUnsubscribe, Channel: channel})
	c.mu.Unlock()
	if _, err := c.await(ctx, call); err != nil {
		return fmt.Errorf("unsubscribe from %s: %w", channel, err)
	}
	return nil
}
