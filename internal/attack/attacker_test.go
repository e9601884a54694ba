//go:build long

package attack

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/ws"
)

// closeTimeout is the time that the broker has to end a connection. Only failing tests reach it.
const closeTimeout = time.Minute

// An attacker is a raw connection that can send what no client library would send.
type attacker struct {
	net.Conn
	in     *bufio.Reader
	frames bool // the connection is a WebSocket
}

// An endpoint is a port, with or without a WebSocket handshake.
type endpoint struct {
	name       string
	http       bool   // the HTTP port instead of the TCP port
	frames     bool   // WebSocket
	extensions string // requested in the handshake
}

const deflateOffer = "permessage-deflate; server_no_context_takeover; client_no_context_takeover"

// endpoints are all ways in which clients can connect, except Server-Sent Events. They have the
// same names as transports.
var endpoints = []endpoint{
	{name: "lines"},
	{name: "websocket-tcp-port", frames: true},
	{name: "websocket-http-port", http: true, frames: true},
	{name: "websocket-compressed", http: true, frames: true, extensions: deflateOffer},
}

var (
	compressed   = endpoints[3]
	uncompressed = endpoints[1:3] // the WebSockets without compression
	webSockets   = endpoints[1:]
)

// dial opens a connection to one of the ports and sends nothing. A nil from means any address.
func (s *scenario) dial(http bool, from net.IP) (*attacker, error) {
	address := s.TCP
	if http {
		address = s.broker.HTTP
	}
	d := net.Dialer{}
	if from != nil {
		d.LocalAddr = &net.TCPAddr{IP: from}
	}
	conn, err := d.DialContext(s.ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(closeTimeout))
	return &attacker{Conn: conn, in: bufio.NewReader(conn)}, nil
}

// open opens a connection and makes the WebSocket handshake, if there is one, with query in its
// URL.
func (s *scenario) open(t *testing.T, e endpoint, query string) *attacker {
	t.Helper()
	a, err := s.dial(e.http, nil)
	if err == nil && e.frames {
		err = a.upgrade(query, e.extensions)
	}
	if err != nil {
		t.Fatalf("%s: %v", e.name, err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// handshake returns the request of a WebSocket handshake.
func handshake(query, extensions string) string {
	head := "GET /ws" + query + " HTTP/1.1\r\nHost: broker\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
	if extensions != "" {
		head += "Sec-WebSocket-Extensions: " + extensions + "\r\n"
	}
	return head + "\r\n"
}

func (a *attacker) upgrade(query, extensions string) error {
	if _, err := io.WriteString(a, handshake(query, extensions)); err != nil {
		return err
	}
	response, err := http.ReadResponse(a.in, nil)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		return fmt.Errorf("handshake: %s", response.Status)
	}
	if agreed := response.Header.Get("Sec-WebSocket-Extensions"); (agreed != "") != (extensions != "") {
		return fmt.Errorf("requested extensions %q, got %q", extensions, agreed)
	}
	a.frames = true
	return nil
}

// send sends a message. It ignores errors: only the events before the end of the connection count.
func (a *attacker) send(text string) {
	if a.frames {
		a.sendFrame(ws.NewTextFrame([]byte(text)))
	} else {
		a.sendRaw(text + "\n")
	}
}

// sendFrame masks a frame and sends it.
func (a *attacker) sendFrame(f ws.Frame) { a.sendRaw(string(ws.MustCompileFrame(ws.MaskFrame(f)))) }

func (a *attacker) sendRaw(text string) { _, _ = io.WriteString(a, text) }

// outcome reads until the broker closes the connection. It returns the errors, the closing event
// and the WebSocket close code, such as "error:forbidden closing:unauthorized 4003", or "HTTP 431".
func (a *attacker) outcome() string { return a.outcomeBefore("") }

// refusal returns the outcome of a connect request that the broker must refuse. It ends with
// "connected" if the broker accepted the request.
func (a *attacker) refusal() string { return a.outcomeBefore("connected") }

// outcomeBefore is like outcome, but stops at the first event of this type.
func (a *attacker) outcomeBefore(typ string) string {
	var codes []string
	for {
		e, code, err := a.readEvent()
		if e.Type == typ && typ != "" {
			return strings.Join(append(codes, typ), " ")
		}
		if code != "" {
			codes = append(codes, code)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			codes = append(codes, "timeout")
		}
		if err != nil {
			return strings.Join(codes, " ")
		}
	}
}

// reply returns the next error, or the type of the event that reports success.
func (a *attacker) reply() string {
	for {
		e, code, err := a.readEvent()
		switch {
		case err != nil:
			return strings.TrimSpace(code + " " + err.Error())
		case code != "":
			return code
		}
		switch e.Type {
		case "subscribed", "published", "history", "presence", "refreshed":
			return e.Type
		}
	}
}

// waitFor reads up to an event of this type. An error fails the test.
func (a *attacker) waitFor(t *testing.T, typ string) event {
	t.Helper()
	for {
		e, code, err := a.readEvent()
		switch {
		case err != nil:
			t.Fatalf("no %s: %v", typ, err)
		case e.Type == typ:
			return e
		case code != "":
			t.Fatalf("got %q, want %s", code, typ)
		}
	}
}

// readEvent reads the next event. code is not empty for an error, a closing event, a WebSocket
// close code or an HTTP response.
func (a *attacker) readEvent() (e event, code string, err error) {
	if a.frames {
		h, err := ws.ReadHeader(a.in)
		if err != nil {
			return e, "", err
		}
		body := make([]byte, h.Length)
		if _, err := io.ReadFull(a.in, body); err != nil {
			return e, "", err
		}
		switch {
		case h.OpCode == ws.OpClose && len(body) >= 2:
			a.sendFrame(ws.NewCloseFrame(body[:2])) // the broker may wait for the echo
			return e, fmt.Sprint(binary.BigEndian.Uint16(body)), nil
		case h.OpCode == ws.OpPong:
			return event{Type: "pong"}, "", nil
		case h.OpCode != ws.OpText || h.Rsv1(): // only long events are compressed; the tests need none of them
			return e, "", nil
		}
		return parseEvent(body)
	}
	if start, err := a.in.Peek(5); err == nil && string(start) == "HTTP/" {
		return e, httpOutcome(a.in), nil
	}
	line, err := a.in.ReadBytes('\n')
	if err != nil {
		return e, "", err
	}
	return parseEvent(line)
}

// readMessage reads the next message.
func (a *attacker) readMessage() ([]byte, error) {
	if !a.frames {
		return a.in.ReadBytes('\n')
	}
	for {
		h, err := ws.ReadHeader(a.in)
		if err != nil {
			return nil, err
		}
		body := make([]byte, h.Length)
		if _, err := io.ReadFull(a.in, body); err != nil || h.OpCode == ws.OpText {
			return body, err
		}
	}
}

// httpOutcome reads a response up to the end of the connection.
func httpOutcome(in *bufio.Reader) string {
	response, err := http.ReadResponse(in, nil)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return fmt.Sprint("HTTP ", response.StatusCode)
}

// parseEvent decodes one message. code is "error:…" or "closing:…", or the text if it is not JSON.
func parseEvent(text []byte) (e event, code string, err error) {
	if err := json.Unmarshal(text, &e); err != nil {
		return e, fmt.Sprintf("%.100q", text), nil
	}
	if e.Type == "error" || e.Type == "closing" {
		code = e.Type + ":" + e.Code
	}
	return e, code, nil
}

// connectAs returns a connect request with this token.
func connectAs(client, token string) string {
	return fmt.Sprintf(`{"type":"connect","client":%s,"token":%s}`, quote(client), quote(token))
}

func quote(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // impossible for a string
	}
	return string(quoted)
}

// connectUser connects an attacker that is a user with a valid token.
func (s *scenario) connectUser(t *testing.T, e endpoint, user string) *attacker {
	t.Helper()
	a := s.open(t, e, "")
	a.send(connectAs(fmt.Sprintf("%s-%d", user, s.clientCount.Add(1)), s.token(user)))
	a.waitFor(t, "connected")
	return a
}

// closing returns the outcome of a connection that the broker closes for this reason, after it has
// sent the errors in errs.
func (e endpoint) closing(errs, reason string, status int) string {
	outcome := errs + " closing:" + reason
	if e.frames {
		outcome += fmt.Sprintf(" %d", status)
	}
	return strings.TrimSpace(outcome)
}
