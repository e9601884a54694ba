package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"switchboard/internal/wire"
)

// Stored is one message of a history.
type Stored = wire.Stored

// Page is a part of the messages that a channel holds, oldest first.
type Page struct {
	Messages []Stored
	More     bool // the channel holds messages after the last one
	// Last is the id after which the next page begins. A page may have no messages and More, if the
	// client sees none of many messages.
	Last int64
}

// Publish encodes data as JSON, sends it to a channel and returns the id of the message. Without a
// connection it waits for one. It sends the message once: if the connection is lost before the
// answer, the error is ErrUnknownOutcome.
//
// options are [Key], [Durable] and [NoEcho]. A message with a Key is sent again after a reconnect,
// as by Update. If the error wraps [ErrNotReplicated], the id is valid.
func (c *Client) Publish(ctx context.Context, channel string, data any, options ...Clause) (int64, error) {
	if err := wire.CheckName("channel", channel); err != nil {
		return 0, err
	}
	req, err := publishRequest(channel, options)
	if err == nil {
		req.Data, err = json.Marshal(data)
	}
	if err != nil {
		return 0, fmt.Errorf("publish to %s: %w", channel, err)
	}
	ev, err := c.roundTrip(ctx, req)
	if err != nil {
		return idOf(ev), fmt.Errorf("publish to %s: %w", channel, err)
	}
	return idOf(ev), nil
}

// Request sends data to the backend and waits for the reply until ctx ends, also over reconnects:
// a backend worker replies to the client, not to its connection. A broker that asks a URL of the
// backend drops the reply if the connection is lost, and its errors may be a [*DetailedError].
// Request sends the request once: if ctx ends after that, the error wraps ErrUnknownOutcome and the
// error of ctx.
func (c *Client) Request(ctx context.Context, data any) (json.RawMessage, error) {
	raw, err := json.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	ev, err := c.roundTrip(ctx, wire.Request{Type: wire.TypeRequest, Data: raw})
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	return ev.Data, nil
}

// Call calls a method of the broker and decodes the JSON of its reply into the value to which into
// points; nil ignores the reply. data is encoded as JSON. Without a connection Call waits for one.
//
// The broker's refusal is an [*Error]; errors.AsType also finds it in the [*DetailedError] with the
// current values, and in the [*Refusal] of a change of fields. Call sends the request once: if the
// connection is lost before the reply, the error is ErrUnknownOutcome.
func (c *Client) Call(ctx context.Context, method string, data, into any) error {
	req, err := methodRequest(method, data)
	if err != nil {
		return err
	}
	ev, err := c.roundTrip(ctx, req)
	return decodeReply(method, ev, err, into)
}

// CallAndSubscribe is Call and then [Client.Subscribe], in one round trip: the broker handles them
// in order, and the second one does not wait for the reply of the first one. If the broker refuses
// the call, the client is not subscribed to the channel, unless it was before. After an error that
// is retryable or leaves the outcome open it may be: the call, or an earlier one, may have made it
// a member, and to unsubscribe would end that.
func (c *Client) CallAndSubscribe(ctx context.Context, method string, data, into any, channel string, opts SubscribeOptions) error {
	req, err := methodRequest(method, data)
	if err == nil {
		err = cmp.Or(checkChannel(channel), opts.check())
	}
	if err != nil {
		return err
	}
	c.mu.Lock()
	before := c.subs[channel] != nil
	called := c.submitLocked(req)
	subscribing := c.subscribeLocked(channel, opts)
	c.mu.Unlock()
	ev, err := c.await(ctx, called)
	if err = decodeReply(method, ev, err, into); err != nil {
		if refusal, refused := errors.AsType[*Error](err); refused && !refusal.Retryable() && !before {
			c.forget(channel)
		}
		return err
	}
	if subscribing == nil {
		return nil
	}
	if _, err := c.await(ctx, subscribing); err != nil {
		return fmt.Errorf("subscribe to %s: %w", channel, err)
	}
	return nil
}

// methodRequest returns the request that calls a method.
func methodRequest(method string, data any) (wire.Request, error) {
	if err := wire.CheckMethod(method); err != nil {
		return wire.Request{}, err
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return wire.Request{}, fmt.Errorf("call %s: %w", method, err)
	}
	return wire.Request{Type: wire.TypeRequest, Method: method, Data: raw}, nil
}

// decodeReply decodes the reply of a method, or returns the error of its call.
func decodeReply(method string, ev wire.Event, err error, into any) error {
	if err != nil {
		return fmt.Errorf("call %s: %w", method, err)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(ev.Data, into); err != nil {
		return fmt.Errorf("call %s: the method has run, its reply cannot be decoded: %w", method, err)
	}
	return nil
}

// History reads the messages that a channel holds with ids above after (0: all), and returns at
// most limit of them (0: as many as the broker gives).
func (c *Client) History(ctx context.Context, channel string, after int64, limit int) (Page, error) {
	if err := wire.CheckName("channel", channel); err != nil {
		return Page{}, err
	}
	ev, err := c.roundTrip(ctx, wire.Request{Type: wire.TypeHistory, Channel: channel, After: &after, Limit: limit})
	if err != nil {
		return Page{}, fmt.Errorf("history of %s: %w", channel, err)
	}
	page := Page{More: ev.More}
	if ev.Messages != nil {
		page.Messages = *ev.Messages
	}
	if n := len(page.Messages); ev.ID != nil {
		page.Last = *ev.ID
	} else if page.Last = after; n > 0 {
		page.Last = page.Messages[n-1].ID
	}
	return page, nil
}

// Refresh replaces the token of this connection and of later ones.
func (c *Client) Refresh(ctx context.Context, newToken string) error {
	c.mu.Lock()
	if c.session == nil { // the next connect sends it
		c.token = token{value: newToken, known: true}
	}
	c.mu.Unlock()
	if _, err := c.roundTrip(ctx, wire.Request{Type: wire.TypeRefresh, Token: newToken}); err != nil {
		return fmt.Errorf("refresh the token: %w", err)
	}
	return nil
}

// Ping sends a ping and waits for the answer.
func (c *Client) Ping(ctx context.Context) error {
	if _, err := c.roundTrip(ctx, wire.Request{Type: wire.TypePing}); err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	return nil
}
