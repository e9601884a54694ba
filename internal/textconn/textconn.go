// Package textconn opens client connections to a broker in tests: lines over TCP, and text messages
// over WebSocket.
package textconn

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"

	"github.com/coder/websocket"
)

// maxMessage is the largest WebSocket message that Receive accepts, in bytes.
const maxMessage = 1 << 20

// Conn is a connection that carries JSON objects as text. One goroutine may send while another
// receives. The end of a context closes the connection.
type Conn interface {
	Send(ctx context.Context, text string) error
	// Receive returns the next message, and an error at the end of the connection.
	Receive(ctx context.Context) ([]byte, error)
	// Close closes the connection at once, without a close handshake.
	Close()
}

// DialTCP opens a connection with one message per line.
func DialTCP(ctx context.Context, d net.Dialer, address string) (Conn, error) {
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return lineConn{c, bufio.NewReader(c)}, nil
}

type lineConn struct {
	conn net.Conn
	in   *bufio.Reader
}

func (l lineConn) Send(ctx context.Context, text string) error {
	defer context.AfterFunc(ctx, l.Close)()
	_, err := io.WriteString(l.conn, text+"\n")
	return err
}

func (l lineConn) Receive(ctx context.Context) ([]byte, error) {
	defer context.AfterFunc(ctx, l.Close)()
	line, err := l.in.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(line, []byte("\n")), nil
}

func (l lineConn) Close() { _ = l.conn.Close() }

// DialWebSocket opens a connection with one message per WebSocket message. A nil o means the
// defaults of package websocket.
func DialWebSocket(ctx context.Context, url string, o *websocket.DialOptions) (Conn, error) {
	c, _, err := websocket.Dial(ctx, url, o)
	if err != nil {
		return nil, err
	}
	c.SetReadLimit(maxMessage)
	return webConn{c}, nil
}

type webConn struct{ conn *websocket.Conn }

func (w webConn) Send(ctx context.Context, text string) error {
	return w.conn.Write(ctx, websocket.MessageText, []byte(text))
}

func (w webConn) Receive(ctx context.Context) ([]byte, error) {
	_, message, err := w.conn.Read(ctx)
	return message, err
}

func (w webConn) Close() { _ = w.conn.CloseNow() }
