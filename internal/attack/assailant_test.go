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

// hangUp is how long the broker may take to end any connection here: it only ends tests that fail.
const hangUp = time.Minute

// assailant is the connection of an attacker, who says what no library would.
type assailant struct {
	net.Conn
	in     *bufio.Reader
	frames bool // it is a WebSocket
}

// entrance is where an attacker gets in: a port, and a handshake or none.
type entrance struct {
	name       string
	http       bool   // the port
	frames     bool   // with a handshake
	extensions string // asked for in it
}

const deflate = "permessage-deflate; server_no_context_takeover; client_no_context_takeover"

// entrances are those of clients; the names are those of the ways.
var entrances = []entrance{
	{name: "lines"},
	{name: "websocket-tcp-port", frames: true},
	{name: "websocket-http-port", http: true, frames: true},
	{name: "websocket-compressed", http: true, frames: true, extensions: deflate},
}

// dial opens a connection to one of the ports, and says nothing.
func (s *siege) dial(http bool, from net.IP) (*assailant, error) {
	address := s.tcp
	if http {
		address = s.victim.http
	}
	d := net.Dialer{}
	if from != nil {
		d.LocalAddr = &net.TCPAddr{IP: from}
	}
	conn, err := d.DialContext(s.ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(hangUp))
	return &assailant{Conn: conn, in: bufio.NewReader(conn)}, nil
}

// enter opens a connection up to the end of the handshake, with query in its URL.
func (s *siege) enter(t *testing.T, e entrance, query string) *assailant {
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

// handshake is a WebSocket's.
func handshake(query, extensions string) string {
	head := "GET /ws" + query + " HTTP/1.1\r\nHost: broker\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
	if extensions != "" {
		head += "Sec-WebSocket-Extensions: " + extensions + "\r\n"
	}
	return head + "\r\n"
}

func (a *assailant) upgrade(query, extensions string) error {
	if _, err := io.WriteString(a, handshake(query, extensions)); err != nil {
		return err
	}
	response, err := http.ReadResponse(a.in, nil)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		return fmt.Errorf("the handshake is answered with %s", response.Status)
	}
	if agreed := response.Header.Get("Sec-WebSocket-Extensions"); (agreed != "") != (extensions != "") {
		return fmt.Errorf("asked for %q, got %q", extensions, agreed)
	}
	a.frames = true
	return nil
}

// say sends a message. Errors do not matter: what the broker said before it hung up does.
func (a *assailant) say(text string) {
	if a.frames {
		a.frame(ws.NewTextFrame([]byte(text)))
	} else {
		a.raw(text + "\n")
	}
}

// frame sends any frame, masked.
func (a *assailant) frame(f ws.Frame) { a.raw(string(ws.MustCompileFrame(ws.MaskFrame(f)))) }

func (a *assailant) raw(text string) { _, _ = io.WriteString(a, text) }

// verdict is all that the broker says until it hangs up, in short: "error:forbidden closing:unauthorized 4003", or
// "HTTP 431". What it says when all is well is left out.
func (a *assailant) verdict() string { return a.verdictOr("") }

// refusal is the verdict of somebody who must not be let in.
func (a *assailant) refusal() string { return a.verdictOr("connected") }

// verdictOr ends with an event of a type that should not come.
func (a *assailant) verdictOr(typ string) string {
	var words []string
	for {
		e, word, err := a.read()
		if e.Type == typ && typ != "" {
			return strings.Join(append(words, typ), " ")
		}
		if word != "" {
			words = append(words, word)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			words = append(words, "and never hangs up")
		}
		if err != nil {
			return strings.Join(words, " ")
		}
	}
}

// answer is the next word, or the type of what is said in its place when all is well.
func (a *assailant) answer() string {
	for {
		e, word, err := a.read()
		switch {
		case err != nil:
			return strings.TrimSpace(word + " " + err.Error())
		case word != "":
			return word
		}
		switch e.Type {
		case "subscribed", "published", "history", "presence", "refreshed":
			return e.Type
		}
	}
}

// until reads up to an event of that type.
func (a *assailant) until(t *testing.T, typ string) event {
	t.Helper()
	for {
		e, word, err := a.read()
		switch {
		case err != nil:
			t.Fatalf("%s does not come: %v", typ, err)
		case e.Type == typ:
			return e
		case word != "":
			t.Fatalf("told %q, not %s", word, typ)
		}
	}
}

// read takes what the broker says next, and its word when it is worth one.
func (a *assailant) read() (e event, word string, err error) {
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
			a.frame(ws.NewCloseFrame(body[:2])) // else it may wait for that
			return e, fmt.Sprint(binary.BigEndian.Uint16(body)), nil
		case h.OpCode == ws.OpPong:
			return event{Type: "pong"}, "", nil
		case h.OpCode != ws.OpText || h.Rsv1(): // it says nothing long to an attacker
			return e, "", nil
		}
		return said(body)
	}
	if start, err := a.in.Peek(5); err == nil && string(start) == "HTTP/" {
		return e, httpWord(a.in), nil
	}
	line, err := a.in.ReadBytes('\n')
	if err != nil {
		return e, "", err
	}
	return said(line)
}

// httpWord reads an answer up to the end of the connection.
func httpWord(in *bufio.Reader) string {
	response, err := http.ReadResponse(in, nil)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return fmt.Sprint("HTTP ", response.StatusCode)
}

func said(text []byte) (e event, word string, err error) {
	if err := json.Unmarshal(text, &e); err != nil {
		return e, fmt.Sprintf("%.100q", text), nil
	}
	if e.Type == "error" || e.Type == "closing" {
		word = e.Type + ":" + e.Code
	}
	return e, word, nil
}

// connectAs is a connect with that token.
func connectAs(client, token string) string {
	return fmt.Sprintf(`{"type":"connect","client":%s,"token":%s}`, quote(client), quote(token))
}

func quote(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // of a text
	}
	return string(quoted)
}

// known is an attacker whom the broker knows: a user with a good token.
func (s *siege) known(t *testing.T, e entrance, user string) *assailant {
	t.Helper()
	a := s.enter(t, e, "")
	a.say(connectAs(fmt.Sprintf("%s-%d", user, s.comer.Add(1)), s.token(user)))
	a.until(t, "connected")
	return a
}

// closing is the verdict of a connection that the broker ends for that reason, with what it said before.
func (e entrance) closing(before, reason string, status int) string {
	verdict := before + " closing:" + reason
	if e.frames {
		verdict += fmt.Sprintf(" %d", status)
	}
	return strings.TrimSpace(verdict)
}
