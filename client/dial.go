package client

import (
	"context"
	"net"
)

// maxMessage is the longest message that the client accepts from the broker, in bytes. A page has
// about 32 KiB, and a payload at most the broker's limits.message: 64 KiB by default.
const maxMessage = 4 << 20

// conn reads and writes messages. One goroutine calls read, and another one calls write. Any
// goroutine may call close, repeatedly. It makes read and write return.
type conn interface {
	// read returns the next message, valid until the next read. The error is a *ClosedError if the
	// transport gives a close reason.
	read() ([]byte, error)
	// write sends the messages in order. It fails when ctx ends.
	write(ctx context.Context, messages [][]byte) error
	close()
}

// netDial opens the TCP connection for a transport.
type netDial func(ctx context.Context, network, address string) (net.Conn, error)

// dial connects to e. ctx bounds only the dialling. read calls onPing when a WebSocket ping
// arrives.
func (c *Client) dial(ctx context.Context, e endpoint, onPing func()) (conn, error) {
	if e.url.Scheme == "tcp" {
		nc, err := c.netDial(ctx, "tcp", e.url.Host)
		if err != nil {
			return nil, err
		}
		return newLineConn(nc), nil
	}
	return dialWebSocket(ctx, c.netDial, c.opts.TLS, e.url.String(), onPing)
}
