package client

import (
	"context"
	"net"
)

// maxMessage is the longest message that is read, in bytes: a page of history is up to
// 1 MiB of payloads, and one message of it may be larger still.
const maxMessage = 4 << 20

// conn moves messages and nothing else. Reads come from one goroutine, writes from
// another; close comes from anywhere, ends both, and may be repeated.
type conn interface {
	// read gives the next message, valid until the next read. The error is a *ClosedError
	// where the transport itself carries a reason.
	read() ([]byte, error)
	// write sends the messages in order; it fails when ctx ends.
	write(ctx context.Context, messages [][]byte) error
	close()
}

// netDial opens the byte stream below either transport.
type netDial func(ctx context.Context, network, address string) (net.Conn, error)

// dial connects to e. ctx bounds the dialling only; alive is called, from within
// read, when a control frame arrives.
func (c *Client) dial(ctx context.Context, e endpoint, alive func()) (conn, error) {
	if e.url.Scheme == "tcp" {
		nc, err := c.netDial(ctx, "tcp", e.url.Host)
		if err != nil {
			return nil, err
		}
		return newLineConn(nc), nil
	}
	return dialSocket(ctx, c.netDial, e.url.String(), alive)
}
