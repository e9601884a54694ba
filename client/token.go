package client

import (
	"context"
	"errors"
	"fmt"

	"switchboard/internal/wire"
)

// token is the one in force. used says that a connection was made with it before, so
// that its source may know a newer one.
type token struct {
	value string
	known bool // TokenSource has given value
	used  bool
}

// currentToken is the token to connect with; the source is asked when none is known.
func (c *Client) currentToken(ctx context.Context) (string, error) {
	c.mu.Lock()
	t := c.token
	c.mu.Unlock()
	if t.known || c.opts.TokenSource == nil {
		return t.value, nil
	}
	value, err := c.opts.TokenSource(ctx)
	if err != nil {
		return "", fmt.Errorf("ask for a token: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token = token{value: value, known: true}
	return value, nil
}

// afterClose looks at a close that is about the token. With a source, a token that ran
// out is forgotten, and so is one that an earlier connection was made with and that is
// refused now: a device that slept may hold one that ran out long ago. Without a source
// there is nothing to come back with.
func (c *Client) afterClose(err error) error {
	closed, ok := errors.AsType[*ClosedError](err)
	if !ok {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	old := closed.Reason == wire.CloseExpired || closed.Reason == wire.CloseUnauthorized && c.token.used
	switch {
	case c.opts.TokenSource != nil && old:
		c.token = token{}
		return &ClosedError{Reason: closed.Reason, Reconnect: true, After: closed.After}
	case closed.Reason == wire.CloseExpired:
		return &ClosedError{Reason: closed.Reason}
	}
	return err
}
