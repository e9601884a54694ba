package client

import (
	"context"
	"errors"
	"fmt"

	"switchboard/internal/wire"
)

// token is the current token.
type token struct {
	value string
	known bool // value is from TokenSource or Refresh
	used  bool // a connection was made with it, so TokenSource may have a newer one
}

// currentToken returns the token for connect. It calls TokenSource if no token is known.
func (c *Client) currentToken(ctx context.Context) (string, error) {
	c.mu.Lock()
	t := c.token
	c.mu.Unlock()
	if t.known || c.opts.TokenSource == nil {
		return t.value, nil
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	value, err := c.opts.TokenSource(ctx)
	if err != nil {
		return "", fmt.Errorf("ask for a token: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token = token{value: value, known: true}
	return value, nil
}

// afterClose handles a close because of the token. With a TokenSource, it discards a token that
// has expired, or that is refused now and was accepted before: a device that slept may have a
// token that expired long ago. Without a TokenSource, the end is final.
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
		return &ClosedError{Reason: closed.Reason, Message: closed.Message, Reconnect: true, After: closed.After}
	case closed.Reason == wire.CloseExpired:
		return &ClosedError{Reason: closed.Reason, Message: closed.Message}
	}
	return err
}
