//go:build long

package attack

import (
	"context"
	"net"

	"github.com/coder/websocket"

	"switchboard/internal/textconn"
)

// A transport is a way to connect.
type transport struct {
	name string
	dial func(ctx context.Context, b *broker) (textconn.Conn, error)
}

// transports are all that the broker has, except Server-Sent Events. Each uses different code in
// the broker.
var transports = []transport{
	{"lines", dialLines},
	{"websocket-tcp-port", func(ctx context.Context, b *broker) (textconn.Conn, error) {
		return dialFrames(ctx, b.TCP, websocket.CompressionDisabled)
	}},
	{"websocket-http-port", func(ctx context.Context, b *broker) (textconn.Conn, error) {
		return dialFrames(ctx, b.HTTP, websocket.CompressionDisabled)
	}},
	{"websocket-compressed", func(ctx context.Context, b *broker) (textconn.Conn, error) {
		return dialFrames(ctx, b.HTTP, websocket.CompressionNoContextTakeover)
	}},
}

func dialLines(ctx context.Context, b *broker) (textconn.Conn, error) {
	return textconn.DialTCP(ctx, net.Dialer{}, b.TCP)
}

func dialFrames(ctx context.Context, address string, mode websocket.CompressionMode) (textconn.Conn, error) {
	return textconn.DialWebSocket(ctx, "ws://"+address+"/ws", &websocket.DialOptions{CompressionMode: mode, CompressionThreshold: 1})
}
