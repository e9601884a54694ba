package client

import (
	"context"
	"encoding/json"
	"fmt"

	"switchboard/internal/wire"
)

// Stored is one message of a history.
type Stored = wire.Stored

// Page is a part of the messages that a channel holds, oldest first.
type Page struct {
	Messages []Stored
	More     bool // there are messages behind the last one
}

// Publish sends data, which becomes JSON, to a channel and returns the id that it got.
// While there is no connection it waits for one. It is sent once: when the connection is
// lost before the answer, the error is ErrUnknownOutcome.
func (c *Client) Publish(ctx context.Context, channel string, data any) (int64, error) {
	if err := wire.CheckName("channel", channel); err != nil {
		return 0, err
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return 0, fmt.Errorf("publish to %s: %w", channel, err)
	}
	ev, err := c.do(ctx, wire.Request{Type: wire.TypePublish, Channel: channel, Data: raw})
	if err != nil {
		return 0, fmt.Errorf("publish to %s: %w", channel, err)
	}
	if ev.ID == nil {
		return 0, nil
	}
	return *ev.ID, nil
}

// Request sends data to a backend worker and waits for the reply, over reconnects too,
// until ctx ends. It is sent once: when ctx ends after that, the error is
// ErrUnknownOutcome and that of ctx.
func (c *Client) Request(ctx context.Context, data any) (json.RawMessage, error) {
	raw, err := json.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	ev, err := c.do(ctx, wire.Request{Type: wire.TypeRequest, Data: raw})
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	return ev.Data, nil
}

// History reads messages that a channel holds: those after an id (0: from the first),
// at most limit (0: as many as the broker gives).
func (c *Client) History(ctx context.Context, channel string, after int64, limit int) (Page, error) {
	if err := wire.CheckName("channel", channel); err != nil {
		return Page{}, err
	}
	ev, err := c.do(ctx, wire.Request{Type: wire.TypeHistory, Channel: channel, After: &after, Limit: limit})
	if err != nil {
		return Page{}, fmt.Errorf("history of %s: %w", channel, err)
	}
	page := Page{More: ev.More}
	if ev.Messages != nil {
		page.Messages = *ev.Messages
	}
	return page, nil
}

// Refresh replaces the token, on the connection and for those to come.
func (c *Client) Refresh(ctx context.Context, newToken string) error {
	c.mu.Lock()
	if c.session == nil { // the next connect takes it along
		c.token = token{value: newToken, known: true}
	}
	c.mu.Unlock()
	if _, err := c.do(ctx, wire.Request{Type: wire.TypeRefresh, Token: newToken}); err != nil {
		return fmt.Errorf("refresh the token: %w", err)
	}
	return nil
}

// Ping asks for a sign of life.
func (c *Client) Ping(ctx context.Context) error {
	if _, err := c.do(ctx, wire.Request{Type: wire.TypePing}); err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	return nil
}
