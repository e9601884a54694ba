package transport

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/ws"

	"switchboard/broker/dialect"
	"switchboard/internal/ssetest"
	"switchboard/internal/wire"
)

const wsPath = "/ws?token=abc&client=phone"

// upgradeRequest returns a WebSocket handshake with the key of RFC 6455 §1.3.
func upgradeRequest(path, header string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: broker.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" + header + "\r\n"
}

// peer is a client on a plain socket, so that a test can choose the pieces in which it writes.
type peer struct {
	*net.TCPConn
	t      *testing.T
	framed bool
	stream bool
	r      *bufio.Reader
	events *ssetest.Reader // of a stream whose response has begun
}

func (s *service) dial() *peer {
	s.t.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(testTimeout))
	tcp := c.(*net.TCPConn)
	_ = tcp.SetReadBuffer(64 << 10) // a fixed size, so that tests know how much the system takes
	return &peer{TCPConn: tcp, t: s.t, framed: s.framed, stream: s.stream, r: bufio.NewReader(c)}
}

// handshake makes the WebSocket handshake. For a peer without WebSocket it does nothing.
func (p *peer) handshake(path string) {
	p.t.Helper()
	if !p.framed {
		return
	}
	p.write([]byte(upgradeRequest(path, "")))
	resp := p.response()
	if resp.StatusCode != http.StatusSwitchingProtocols {
		p.t.Fatalf("handshake: %s", resp.Status)
	}
	if got := resp.Header.Get("Sec-WebSocket-Accept"); got != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" {
		p.t.Fatalf("handshake: Sec-WebSocket-Accept %q", got)
	}
}

func (p *peer) response() *http.Response {
	p.t.Helper()
	resp, err := http.ReadResponse(p.r, nil)
	if err != nil {
		p.t.Fatalf("no HTTP response: %v", err)
	}
	return resp
}

func (p *peer) write(b []byte) {
	p.t.Helper()
	if _, err := p.Write(b); err != nil {
		p.t.Fatal(err)
	}
}

// writeCut writes b in pieces of the given sizes, over and over.
func (p *peer) writeCut(b []byte, sizes ...int) {
	p.t.Helper()
	for i := 0; len(b) > 0; i++ {
		n := min(len(b), sizes[i%len(sizes)])
		p.write(b[:n])
		b = b[n:]
	}
}

// message is text as this peer sends it.
func (p *peer) message(text string) []byte {
	if !p.framed {
		return spoken.Stream([]byte(text))
	}
	return clientFrame(true, opData(), text)
}

// opData is the opcode of messages.
func opData() ws.OpCode {
	if spoken.Framing == dialect.Binary {
		return ws.OpBinary
	}
	return ws.OpText
}

// clientFrame returns a masked frame.
func clientFrame(fin bool, op ws.OpCode, payload string) []byte {
	f := ws.MaskFrameInPlaceWith(ws.NewFrame(op, fin, []byte(payload)), [4]byte{0xa5, 0x5a, 0x01, 0xff})
	b, err := ws.CompileFrame(f)
	if err != nil {
		panic(err)
	}
	return b
}

// read returns the next event from the broker: a message, ping, pong, close (its code and reason),
// end or failure. On a stream, the kind of an event is its name.
func (p *peer) read() event {
	switch {
	case p.framed:
		return p.readFrame()
	case p.stream:
		return p.readEvent()
	}
	unit, err := spoken.Read(p.r)
	if err != nil {
		return ending(err, string(unit))
	}
	if e, err := spoken.Event(unit); err == nil && e.Type == wire.TypePing {
		return event{"ping", ""}
	}
	return event{"message", string(unit)}
}

func (p *peer) readFrame() event {
	h, err := ws.ReadHeader(p.r)
	if err != nil {
		return ending(err, "")
	}
	if err := ws.CheckHeader(h, ws.StateClientSide); err != nil || !h.Fin {
		return event{"bad frame", fmt.Sprint(h, err)}
	}
	payload := make([]byte, h.Length)
	if _, err := io.ReadFull(p.r, payload); err != nil {
		return ending(err, "half a frame")
	}
	switch h.OpCode {
	case ws.OpPing:
		return event{"ping", string(payload)}
	case ws.OpPong:
		return event{"pong", string(payload)}
	case ws.OpClose:
		if len(payload) < 2 {
			return event{"close", ""}
		}
		return event{"close", strings.TrimSpace(fmt.Sprintf("%d %s", binary.BigEndian.Uint16(payload), payload[2:]))}
	}
	return event{"message", string(payload)}
}

const streamPath = "/sse?channel=news&token=abc&client=phone"

// beginStream requests a stream and reads its first event, which comes once the client is
// connected.
func (p *peer) beginStream(service *service) *session {
	p.t.Helper()
	p.write([]byte("GET " + streamPath + " HTTP/1.1\r\nHost: broker.example\r\n\r\n"))
	s := service.session()
	s.do(func() {
		s.conn.Send(wire.Event{Type: wire.TypeConnected, Client: "phone", ID: new(int64)})
	})
	if e := p.read(); e.kind != "connected" && e.kind != "end" && e.kind != "failure" {
		p.t.Fatalf("the stream begins with %v", e)
	}
	return s
}

// readEvent is read for a stream.
func (p *peer) readEvent() event {
	if p.events == nil {
		resp, err := http.ReadResponse(p.r, nil)
		if err != nil {
			return ending(err, "")
		}
		if resp.StatusCode != http.StatusOK {
			return event{"status", resp.Status}
		}
		p.events = ssetest.NewReader(resp.Body, "")
	}
	switch e, err := p.events.Next(); {
	case err != nil:
		return ending(err, e.Raw)
	case e.Comment:
		return event{"ping", ""}
	default:
		return event{e.Name, e.Data}
	}
}

func ending(err error, rest string) event {
	if errors.Is(err, io.EOF) {
		return event{"end", rest}
	}
	return event{"failure", err.Error()}
}

func (p *peer) want(events ...event) {
	p.t.Helper()
	for i, want := range events {
		if got := p.read(); got != want {
			p.t.Fatalf("the peer reads %.80v as event %d, want %.80v", got, i, want)
		}
	}
}

// wantClosing reads the closing message, the close code and the end. detail is "" for the message
// of the reason.
func (p *peer) wantClosing(code string, status int, detail string, afterMS int64) {
	p.t.Helper()
	detail = wire.Closing(wire.CloseReason(code), detail, 0).Message
	e := p.read()
	decode := spoken.Event
	if p.stream {
		decode = wire.DecodeEvent
		if code == string(wire.CloseSuperseded) { // a superseded stream may reconnect, after a second
			afterMS = max(afterMS, 1000)
		}
	}
	got, err := decode([]byte(e.text))
	if err != nil || got.Type != "closing" || got.Code != code ||
		got.Message != detail || got.AfterMS != afterMS {
		p.t.Fatalf("the peer reads %v, want a closing message with %s, %q, %d", e, code, detail, afterMS)
	}
	if p.framed {
		p.want(event{"close", fmt.Sprintf("%d %s", status, code)})
		p.write(clientFrame(true, ws.OpClose, string(binary.BigEndian.AppendUint16(nil, uint16(status)))))
	}
	p.want(event{"end", ""})
}

// join concatenates parts.
func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
