package client

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"switchboard/internal/wire"
)

// call is a message to the broker that gets an answer.
type call struct {
	ref  int64
	req  wire.Request
	sub  *subscription // set for a subscribe
	done chan struct{} // closed when the fields below are final

	// guarded by Client.mu until done is closed
	noCaller bool      // no caller waits: a resubscription after a reconnect
	sent     bool      // on this connection, or it must not be sent again
	sentAt   time.Time // when it was sent first; zero before
	answer   wire.Event
	err      error
}

// refresh makes a subscribe continue from the current position of its channel.
func (call *call) refresh() {
	if call.sub != nil {
		call.req = call.sub.request()
		call.req.Ref = wire.RefOf(call.ref)
	}
}

func (c *Client) newRefLocked() int64 {
	c.nextRef++
	return c.nextRef
}

// submitLocked registers a call and sends it on this connection or the next one.
func (c *Client) submitLocked(req wire.Request) *call {
	call := &call{ref: c.newRefLocked(), req: req, done: make(chan struct{})}
	call.req.Ref = wire.RefOf(call.ref)
	if c.stopped != nil {
		c.resolveLocked(call, wire.Event{}, c.stopped)
		return call
	}
	c.calls[call.ref] = call
	if c.session != nil {
		c.session.sendLocked(outgoing{req: call.req, call: call})
	}
	c.inbox.wakeReader()
	return call
}

// roundTrip submits a call and waits for the answer.
func (c *Client) roundTrip(ctx context.Context, req wire.Request) (wire.Event, error) {
	c.mu.Lock()
	call := c.submitLocked(req)
	c.mu.Unlock()
	return c.await(ctx, call)
}

// await waits for the answer to a call. If ctx ends first, a publish or request that was sent has
// an unknown outcome, and a subscription is kept.
func (c *Client) await(ctx context.Context, call *call) (wire.Event, error) {
	select {
	case <-call.done:
		return call.answer, call.err
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[call.ref] != call { // the answer came at the same moment
		<-call.done
		return call.answer, call.err
	}
	if call.req.Type == wire.TypeSubscribe {
		call.noCaller = true
		return wire.Event{}, ctx.Err()
	}
	err := ctx.Err()
	if !call.sentAt.IsZero() && (call.req.Type == wire.TypePublish || call.req.Type == wire.TypeRequest) {
		err = fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	c.resolveLocked(call, wire.Event{}, err)
	return wire.Event{}, err
}

func (c *Client) resolveLocked(call *call, answer wire.Event, err error) {
	delete(c.calls, call.ref)
	call.answer, call.err = answer, err
	close(call.done)
}

// repeatWithin is how long after the first time an update with a key is sent again. It is much less
// than the time for which the broker knows the key, ten minutes by default.
const repeatWithin = time.Minute

// hasKey reports whether the call is an update that the broker applies once, even if it arrives
// twice.
func (call *call) hasKey() bool {
	return call.req.Type == wire.TypePublish && call.req.StateRequest != nil && call.req.Key != ""
}

// callsPending reports whether any call has no answer yet.
func (c *Client) callsPending() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.calls) > 0
}

// answerType maps the type of a call to the type of its answer.
var answerType = map[string]string{
	wire.TypeSubscribe:   wire.TypeSubscribed,
	wire.TypeUnsubscribe: wire.TypeUnsubscribed,
	wire.TypePublish:     wire.TypePublished,
	wire.TypeRequest:     wire.TypeReply,
	wire.TypeHistory:     wire.TypeHistory,
	wire.TypeState:       wire.TypeState,
	wire.TypePresence:    wire.TypePresence,
	wire.TypeRefresh:     wire.TypeRefreshed,
	wire.TypePing:        wire.TypePong,
}

// answerLocked resolves the call that ev answers.
func (c *Client) answerLocked(ev wire.Event) {
	call := c.calls[ev.Ref.Value]
	if !ev.Ref.Set || call == nil || ev.Type != answerType[call.req.Type] {
		return
	}
	switch ev.Type {
	case wire.TypeSubscribed:
		c.subscribedLocked(call, ev)
	case wire.TypeRefreshed:
		c.token.value, c.token.known = call.req.Token, true
	}
	c.resolveLocked(call, ev, nil)
}

// detach removes s as the current connection, and returns how long it was connected, and whether it
// was at all. The next
// connection sends unsent calls, and repeats sent calls that are safe to repeat. A sent request
// keeps waiting for its reply. detach resolves sent publishes without a key, sent calls of methods,
// unsubscribes, and subscribes that a later one replaced.
func (c *Client) detach(s *session) (uptime time.Duration, accepted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.connectedAt.IsZero() {
		return 0, false
	}
	c.session = nil
	for _, sub := range c.subs {
		sub.active = false
	}
	for _, call := range c.calls {
		switch call.req.Type {
		case wire.TypePublish:
			if call.sent && !call.hasKey() {
				c.resolveLocked(call, wire.Event{}, errConnectionLost)
			}
			call.sent = false
		case wire.TypeRequest:
			if call.req.Method == "" {
				continue // a worker's reply arrives on the new connection
			}
			if call.sent {
				c.resolveLocked(call, wire.Event{}, errConnectionLost)
			}
		case wire.TypeUnsubscribe: // a connection that is gone holds no subscription
			c.resolveLocked(call, wire.Event{}, nil)
		case wire.TypeSubscribe:
			if call.sub.pending != call {
				c.resolveLocked(call, wire.Event{}, errReplaced)
			}
			call.sent = false
		default:
			call.sent = false
		}
	}
	return time.Since(s.connectedAt), true
}

// order returns 0 for calls that a new connection sends first: an update with Own needs the
// subscription that it had.
func (call *call) order() int {
	if call.noCaller {
		return 0
	}
	return 1
}

// resumeLocked sends all subscriptions on s, and then the unsent calls, oldest first.
func (c *Client) resumeLocked(s *session) {
	for _, sub := range c.subs {
		if sub.channel != wire.AllChannel && sub.pending == nil && !sub.parked() {
			c.resubscribeLocked(sub)
		}
	}
	var unsent []*call
	for _, call := range c.calls {
		if call.hasKey() && !call.sentAt.IsZero() && time.Since(call.sentAt) > repeatWithin {
			c.resolveLocked(call, wire.Event{}, errConnectionLost)
		} else if !call.sent {
			unsent = append(unsent, call)
		}
	}
	slices.SortFunc(unsent, func(a, b *call) int {
		return cmp.Or(cmp.Compare(a.order(), b.order()), cmp.Compare(a.ref, b.ref))
	})
	for _, call := range unsent {
		call.refresh()
		s.outbox = append(s.outbox, outgoing{req: call.req, call: call})
	}
	c.showAgainLocked()
	s.signal()
}
