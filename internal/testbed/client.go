package testbed

import (
	"context"

	"switchboard/client"
)

// A Client is a running client of package client.
type Client struct {
	*client.Client
	cancel context.CancelFunc
	ended  chan error
}

// Connect runs a client until Stop. It does not wait until the client is connected.
func Connect(ctx context.Context, o client.Options) (*Client, error) {
	c, err := client.New(o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	running := &Client{c, cancel, make(chan error, 1)}
	go func() { running.ended <- c.Run(ctx) }()
	return running, nil
}

// Stop disconnects the client. It returns the result of its Run, and may be called again.
func (c *Client) Stop() error {
	c.cancel()
	err := <-c.ended
	c.ended <- err
	return err
}
