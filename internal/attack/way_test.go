package attack

import (
	"context"
	"net"

	"github.com/coder/websocket"

	"switchboard/internal/textconn"
)

// way is how clients come in.
type way struct {
	name string
	dial func(ctx context.Context, v *victim) (textconn.Conn, error)
}

// ways are all there are: each has code of its own in the broker, and most of them share some.
var ways = []way{
	{"lines", dialLines},
	{"websocket-tcp-port", func(ctx context.Context, v *victim) (textconn.Conn, error) {
		return dialFrames(ctx, v.tcp, websocket.CompressionDisabled)
	}},
	{"websocket-http-port", func(ctx context.Context, v *victim) (textconn.Conn, error) {
		return dialFrames(ctx, v.http, websocket.CompressionDisabled)
	}},
	{"websocket-compressed", func(ctx context.Context, v *victim) (textconn.Conn, error) {
		return dialFrames(ctx, v.http, websocket.CompressionNoContextTakeover)
	}},
}

func dialLines(ctx context.Context, v *victim) (textconn.Conn, error) {
	return textconn.DialTCP(ctx, net.Dialer{}, v.tcp)
}

func dialFrames(ctx context.Context, address string, mode websocket.CompressionMode) (textconn.Conn, error) {
	return textconn.DialWebSocket(ctx, "ws://"+address+"/ws", &websocket.DialOptions{CompressionMode: mode, CompressionThreshold: 1})
}
