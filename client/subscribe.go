package client

import (
	"context"
	"fmt"
	"time"

	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// SubscribeOptions configures a subscription.
type SubscribeOptions struct {
	// After is the last id that the caller has seen; a pointer to 0 is the beginning of the channel.
	// Zero (nil) means to start now, or to continue an existing subscription. Otherwise an existing
	// subscription ends first, and with it the fields that only this client owns in the channel.
	After *int64
	// State also subscribes to the fields of the channel: see Client.Fields, OnFields and
	// Message.Changes. Zero means that only the data of messages arrives.
	State bool
	// Prefix selects the fields whose names begin with it. Zero means all fields that this client may
	// read. It needs State.
	Prefix string
	// Presence also subscribes to the other clients of the channel: see OnPresence and OnHere. Zero
	// means no.
	Presence bool
	// Load reads the application's data, when the subscription begins and again after each gap. The
	// messages of the channel wait meanwhile, and then those that are not in the data follow: see
	// Loaded. After must be nil.
	//
	// Load runs in its own goroutine, never twice at once for one channel. If it fails, OnLoadError is
	// called, and the subscription begins again after a delay. ctx ends after 30 s, after another gap,
	// and with the subscription. A later Subscribe replaces the function and does not call it.
	// Zero means that there is nothing to read.
	Load func(ctx context.Context) (Loaded, error)
}

// same reports whether o asks the broker for the same as p, and loads if p does. Functions cannot
// be compared.
func (o SubscribeOptions) same(p SubscribeOptions) bool {
	return o.State == p.State && o.Prefix == p.Prefix && o.Presence == p.Presence && (o.Load == nil) == (p.Load == nil)
}

// selector returns the `state` of the subscribe, nil without State.
func (o SubscribeOptions) selector() *wire.Selector {
	if !o.State {
		return nil
	}
	return &wire.Selector{Prefix: o.Prefix}
}

// Subscription is the result of Subscribe.
type Subscription struct {
	Channel string
	// ID is the position at which it starts.
	ID int64
	// Recovered is false if messages between After and now are missing. OnGap is then called, too. It
	// is true without After.
	Recovered bool
}

// position is the last id seen of one queue.
type position struct {
	id    int64
	known bool
}

// advance moves p to id. It returns false if id is not new.
func (p *position) advance(id int64) bool {
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

// subscription is one channel that the caller has subscribed to.
type subscription struct {
	channel string
	opts    SubscribeOptions // of the last Subscribe, without After
	pos     position
	// active is set when `subscribed` arrives on this connection. Earlier messages of the channel
	// belong to an earlier subscription, and arrive again.
	active      bool
	established bool    // any connection has answered `subscribed`
	pending     *call   // the subscribe without an answer yet
	retry       backoff // after retryable refusals

	view   *view   // nil without State, and before the first `subscribed`
	series series  // the newest pages of the state
	loader *loader // nil without Load
}

// request returns the subscribe for sub at its position.
func (sub *subscription) request() wire.Request {
	req := wire.Request{
		Type: wire.TypeSubscribe, Channel: sub.channel, After: sub.pos.after(), Presence: sub.opts.Presence,
	}
	if selector := sub.opts.selector(); selector != nil {
		req.StateRequest = &wire.StateRequest{State: selector, Held: sub.holds(selector)}
	}
	return req
}

// Subscribe subscribes to a channel, over all reconnects, until Unsubscribe. The messages after
// SubscribeOptions.After follow, and then new ones. With State, the fields follow first, and
// OnFields is called. The options of the last Subscribe count.
//
// The error is a *Error if the broker refuses. If ctx ends, the error is its error, and the client
// continues to subscribe.
func (c *Client) Subscribe(ctx context.Context, channel string, opts SubscribeOptions) (Subscription, error) {
	if err := checkChannel(channel); err != nil {
		return Subscription{}, err
	}
	if err := opts.check(); err != nil {
		return Subscription{}, err
	}
	c.mu.Lock()
	call := c.subscribeLocked(channel, opts)
	if call == nil {
		defer c.mu.Unlock()
		return Subscription{Channel: channel, ID: c.subs[channel].pos.id, Recovered: true}, nil
	}
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

// subscribeLocked submits a subscribe and returns its call, or nil if the channel is subscribed
// with these options.
func (c *Client) subscribeLocked(channel string, opts SubscribeOptions) *call {
	sub := c.subs[channel]
	after := opts.After
	opts.After = nil
	if sub != nil && sub.active && after == nil && sub.opts.same(opts) && sub.pending == nil && c.stopped == nil {
		sub.opts = opts
		return nil
	}
	return c.addSubscriptionLocked(channel, opts, after)
}

// checkChannel returns an error for a name that the broker refuses, and for AllChannel.
func checkChannel(channel string) error {
	if channel == wire.AllChannel {
		return wire.Errorf(wire.BadRequest, "channel: every client receives %s without subscribing", channel)
	}
	return wire.CheckName("channel", channel)
}

func (o SubscribeOptions) check() error {
	if o.Prefix != "" && !o.State {
		return wire.Errorf(wire.BadRequest, "prefix: it needs State")
	}
	if o.After != nil && o.Load != nil {
		return wire.Errorf(wire.BadRequest, "after: with Load, it returns the position")
	}
	return state.CheckPrefix(o.Prefix)
}

// addSubscriptionLocked adds a subscription and returns its call. Without a new position and new
// options, it returns the pending call if there is one.
func (c *Client) addSubscriptionLocked(channel string, opts SubscribeOptions, after *int64) *call {
	sub := c.subs[channel]
	if sub == nil {
		sub = &subscription{
			channel: channel,
			retry:   newBackoff(c.opts, 1),
		}
		c.subs[channel] = sub
	}
	same := sub.opts.same(opts)
	sub.opts = opts
	if sub.pending != nil && after == nil && same {
		sub.pending.noCaller = false
		return sub.pending
	}
	c.setLoaderLocked(sub, after != nil)
	if after != nil { // the broker ignores it in a subscribe for a channel that the connection has
		c.leaveLocked(sub, position{id: *after, known: true})
	}
	return c.submitSubscribeLocked(sub)
}

// submitSubscribeLocked submits a subscribe at the position of sub.
func (c *Client) submitSubscribeLocked(sub *subscription) *call {
	call := c.submitLocked(sub.request())
	call.sub = sub
	if c.stopped == nil {
		sub.pending = call
	}
	return call
}

// resubscribeLocked registers a subscribe for which no caller waits. It does not send it.
func (c *Client) resubscribeLocked(sub *subscription) {
	call := &call{
		ref: c.newRefLocked(), sub: sub, done: make(chan struct{}), noCaller: true,
	}
	call.refresh()
	c.calls[call.ref], sub.pending = call, call
}

// subscribedLocked makes the subscription of call active.
func (c *Client) subscribedLocked(call *call, ev wire.Event) {
	sub := call.sub
	if sub.pending != call {
		return // a later Subscribe has another position, or the channel was unsubscribed
	}
	continues := sub.active && ev.Recovered == nil
	sub.pending, sub.active, sub.established = nil, true, true
	sub.retry.reset()
	c.startFieldsLocked(sub, call.req, ev, continues)
	c.setPositionLocked(sub, call.req.After, ev)
	c.loadIfDueLocked(sub)
}

// subscribedByBackendLocked handles a `subscribed` without ref: the backend has subscribed the
// client. A subscription that exists subscribes by itself, from its own position.
func (c *Client) subscribedByBackendLocked(ev wire.Event) {
	if c.subs[ev.Channel] != nil || ev.ID == nil || checkChannel(ev.Channel) != nil {
		return
	}
	c.subs[ev.Channel] = &subscription{
		channel: ev.Channel, retry: newBackoff(c.opts, 1), active: true, established: true, pos: position{id: *ev.ID, known: true},
	}
	if c.opts.OnSubscribed != nil {
		got := Subscription{Channel: ev.Channel, ID: *ev.ID, Recovered: true}
		c.inbox.put(item{do: func() { c.opts.OnSubscribed(got) }})
	}
}

// setPositionLocked sets the position of sub by the answer ev. asked is the `after` of the request.
// If the messages after asked follow, the position does not change. Otherwise the position becomes
// the id of the answer. That id may be lower than the last id seen: after a failover the ids
// continue from there.
func (c *Client) setPositionLocked(sub *subscription, asked *int64, ev wire.Event) {
	lost := asked != nil && ev.Recovered != nil && !*ev.Recovered
	if ev.ID == nil || asked != nil && !lost {
		return
	}
	sub.pos = position{id: *ev.ID, known: true}
	if lost && *ev.ID != *asked { // else a gap arrives among the messages
		c.reportGapLocked(Gap{Channel: sub.channel, After: *asked, ID: *ev.ID})
	}
}

// refuseLocked resolves a call with an error. An existing subscription survives a retryable
// refusal: the client subscribes again after a delay.
func (c *Client) refuseLocked(ctx context.Context, s *session, call *call, err *Error, ev wire.Event) {
	if call.req.Type == wire.TypePublish && ev.ID != nil { // of a message that is stored
		c.resolveLocked(call, ev, fmt.Errorf("%w: %w", ErrNotReplicated, err))
		return
	}
	c.resolveLocked(call, wire.Event{}, withDetails(err, ev))
	sub := call.sub
	if sub == nil || sub.pending != call {
		return
	}
	sub.pending = nil
	kept := call.noCaller || sub.established
	if kept && err.Retryable() {
		c.resubscribeLocked(sub)
		again, after := sub.pending, max(sub.retry.next(), err.After)
		s.wg.Go(func() { s.retrySubscribe(ctx, again, after) })
		return
	}
	if !kept {
		c.removeLocked(sub)
		return
	}
	c.dropLocked(sub, err)
}

// endedByBrokerLocked handles an `unsubscribed` without ref: the channel is no longer allowed. A
// pending subscribe for the channel gets its own answer.
func (c *Client) endedByBrokerLocked(ev wire.Event) {
	if sub := c.subs[ev.Channel]; sub != nil && sub.active && sub.pending == nil {
		c.dropLocked(sub, wire.Errorf(wire.ErrorCode(ev.Code), "%s", ev.Message))
	}
}

// removeLocked removes a subscription.
func (c *Client) removeLocked(sub *subscription) {
	delete(c.subs, sub.channel)
	delete(c.shown, sub.channel)
	if sub.loader != nil {
		sub.loader.stop()
	}
}

// dropLocked removes a subscription that the broker refuses, and calls OnUnsubscribed.
func (c *Client) dropLocked(sub *subscription, err *Error) {
	c.removeLocked(sub)
	c.opts.Logger.Warn().Err(err).Str("channel", sub.channel).Msg("subscription lost")
	if c.opts.OnUnsubscribed != nil {
		c.inbox.put(item{do: func() { c.opts.OnUnsubscribed(sub.channel, err) }})
	}
}

// retrySubscribe sends a subscribe after a delay, if it is still pending.
func (s *session) retrySubscribe(ctx context.Context, call *call, after time.Duration) {
	if !pause(ctx, after) {
		return
	}
	c := s.client
	c.mu.Lock()
	defer c.mu.Unlock()
	if call.sub.pending != call { // it would begin a subscription that has ended meanwhile
		if c.calls[call.ref] == call {
			c.resolveLocked(call, wire.Event{}, errReplaced)
		}
		return
	}
	call.refresh()
	s.sendLocked(outgoing{req: call.req, call: call})
}

// Unsubscribe ends a subscription at once: OnMessage receives only messages of the channel that are
// already queued. Unsubscribe returns when the broker has confirmed.
func (c *Client) Unsubscribe(ctx context.Context, channel string) error {
	if err := checkChannel(channel); err != nil {
		return err
	}
	call := c.forget(channel)
	if call == nil {
		return nil
	}
	if _, err := c.await(ctx, call); err != nil {
		return fmt.Errorf("unsubscribe from %s: %w", channel, err)
	}
	return nil
}

// forget ends a subscription, and returns the call that tells the broker, or nil if there is no
// subscription or no connection.
func (c *Client) forget(channel string) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	sub := c.subs[channel]
	if sub != nil {
		c.removeLocked(sub)
		if sub.pending != nil {
			pending := sub.pending
			sub.pending = nil
			c.resolveLocked(pending, wire.Event{}, ErrUnsubscribed)
		}
	}
	if sub == nil || c.session == nil {
		return nil
	}
	return c.submitLocked(wire.Request{Type: wire.TypeUnsubscribe, Channel: channel})
}
