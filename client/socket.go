package client

import (
	"bytes"
	"context"
	"net"
	"net/http"

	"github.com/coder/websocket"

	"switchboard/internal/wire"
)

// socketConn is WebSocket: one JSON object per text frame.
type socketConn struct {
	ws  *websocket.Conn
	buf bytes.Buffer // the message last read
}

// dialSocket makes an HTTP transport for this one attempt: a shared one goes on dialling
// for later requests when ctx has ended, and a Client leaves nothing behind.
func dialSocket(ctx context.Context, dial netDial, url string, alive func()) (conn, error) {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(_ context.Context, network, address string) (net.Conn, error) {
			return dial(ctx, network, address)
		},
	}
	defer transport.CloseIdleConnections() // ends a TLS handshake too that ctx has left behind
	ws, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: transport},
		OnPingReceived: func(context.Context, []byte) bool {
			alive()
			return true // the library answers with the pong
		},
	})
	if err != nil {
		return nil, err
	}
	ws.SetReadLimit(maxMessage)
	return &socketConn{ws: ws}, nil
}

func (s *socketConn) read() ([]byte, error) {
	_, r, err := s.ws.Reader(context.Background()) // close ends it
	if err != nil {
		return nil, closeStatus(err)
	}
	s.buf.Reset()
	if _, err := s.buf.ReadFrom(r); err != nil {
		return nil, closeStatus(err)
	}
	return s.buf.Bytes(), nil
}

// closeStatus turns one of the broker's close codes into a ClosedError.
func closeStatus(err error) error {
	reason, ok := wire.CloseReasonOf(int(websocket.CloseStatus(err)))
	if !ok {
		return err
	}
	return &ClosedError{Reason: reason, Reconnect: reason.Reconnect()}
}

func (s *socketConn) write(ctx context.Context, messages [][]byte) error {
	for _, m := range messages {
		if err := s.ws.Write(ctx, websocket.MessageText, m); err != nil {
			return err
		}
	}
	return nil
}

func (s *socketConn) close() { _ = s.ws.CloseNow() }
