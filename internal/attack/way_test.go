package attack

import (
	"bufio"
	"context"
	"io"
	"net"

	"github.com/coder/websocket"
)

// link is a connection of somebody well-behaved, message by message.
type link interface {
	Send(ctx context.Context, text string) error
	Receive(ctx context.Context) ([]byte, error)
	Close()
}

// way is how clients come in.
type way struct {
	name string
	dial func(ctx context.Context, v *victim) (link, error)
}

// ways are all there are: each has code of its own in the broker, and most of them share some.
var ways = []way{
	{"lines", dialLines},
	{"websocket-tcp-port", func(ctx context.Context, v *victim) (link, error) {
		return dialFrames(ctx, v.tcp, websocket.CompressionDisabled)
	}},
	{"websocket-http-port", func(ctx context.Context, v *victim) (link, error) {
		return dialFrames(ctx, v.http, websocket.CompressionDisabled)
	}},
	{"websocket-compressed", func(ctx context.Context, v *victim) (link, error) {
		return dialFrames(ctx, v.http, websocket.CompressionNoContextTakeover)
	}},
}

// lines is raw TCP.
type lines struct {
	conn net.Conn
	in   *bufio.Scanner
}

func dialLines(ctx context.Context, v *victim) (link, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", v.tcp)
	if err != nil {
		return nil, err
	}
	l := lines{conn, bufio.NewScanner(conn)}
	l.in.Buffer(nil, 1<<20)
	return l, nil
}

func (l lines) Send(_ context.Context, text string) error {
	_, err := io.WriteString(l.conn, text+"\n")
	return err
}

func (l lines) Receive(ctx context.Context) ([]byte, error) {
	defer context.AfterFunc(ctx, l.Close)()
	if l.in.Scan() {
		return l.in.Bytes(), nil
	}
	if err := l.in.Err(); err != nil {
		return nil, err
	}
	return nil, io.EOF
}

func (l lines) Close() { _ = l.conn.Close() }

// frames is WebSocket, by a library that the broker's TCP port does not use.
type frames struct{ conn *websocket.Conn }

func dialFrames(ctx context.Context, address string, mode websocket.CompressionMode) (link, error) {
	conn, _, err := websocket.Dial(ctx, "ws://"+address+"/ws", &websocket.DialOptions{CompressionMode: mode, CompressionThreshold: 1})
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(1 << 20)
	return frames{conn}, nil
}

func (f frames) Send(ctx context.Context, text string) error {
	return f.conn.Write(ctx, websocket.MessageText, []byte(text))
}

func (f frames) Receive(ctx context.Context) ([]byte, error) {
	_, message, err := f.conn.Read(ctx)
	return message, err
}

func (f frames) Close() { _ = f.conn.CloseNow() }
