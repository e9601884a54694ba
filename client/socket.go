package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"net/http"

	"github.com/coder/websocket"

	"switchboard/internal/wire"
)

// webSocketConn is a WebSocket connection: one JSON object per text frame.
type webSocketConn struct {
	ws  *websocket.Conn
	buf bytes.Buffer // the last message
}

// dialWebSocket uses an HTTP transport for this attempt only. A shared transport would continue to
// dial after ctx has ended, and the goroutine would outlive the Client.
func dialWebSocket(ctx context.Context, dial netDial, config *tls.Config, url string, onPing func()) (conn, error) {
	transport := &http.Transport{
		Proxy:           http.ProxyFromEnvironment,
		TLSClientConfig: config.Clone(), // nil for nil
		DialContext: func(_ context.Context, network, address string) (net.Conn, error) {
			return dial(ctx, network, address)
		},
	}
	defer transport.CloseIdleConnections() // also ends a TLS handshake that outlives ctx
	ws, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: transport},
		OnPingReceived: func(context.Context, []byte) bool {
			onPing()
			return true // the library answers with the pong
		},
	})
	if err != nil {
		return nil, err
	}
	ws.SetReadLimit(maxMessage)
	return &webSocketConn{ws: ws}, nil
}

func (s *webSocketConn) read() ([]byte, error) {
	_, r, err := s.ws.Reader(context.Background()) // close interrupts it
	if err != nil {
		return nil, closeStatus(err)
	}
	s.buf.Reset()
	if _, err := s.buf.ReadFrom(r); err != nil {
		return nil, closeStatus(err)
	}
	return s.buf.Bytes(), nil
}

// closeStatus returns a ClosedError if err has one of the broker's close codes, else err.
func closeStatus(err error) error {
	reason, ok := wire.CloseReasonOf(int(websocket.CloseStatus(err)))
	if !ok {
		return err
	}
	return &ClosedError{Reason: reason, Reconnect: reason.Reconnect()}
}

func (s *webSocketConn) write(ctx context.Context, messages [][]byte) error {
	for _, m := range messages {
		if err := s.ws.Write(ctx, websocket.MessageText, m); err != nil {
			return err
		}
	}
	return nil
}

func (s *webSocketConn) close() { _ = s.ws.CloseNow() }
