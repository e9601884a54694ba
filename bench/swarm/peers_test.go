package swarm

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/gobwas/ws"
)

// talk is a connection as a script of the server's side sees it.
type talk struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

// upgrade answers a handshake for that path.
func (c *talk) upgrade(path string) {
	r, err := http.ReadRequest(c.in)
	if err != nil || r.URL.String() != path || r.Header.Get("Upgrade") != "websocket" {
		c.t.Errorf("got %v, %v; want an upgrade of %s", r, err, path)
		return
	}
	c.send("HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: " + socketAccept + "\r\n\r\n")
}

func (c *talk) send(s string) { _, _ = io.WriteString(c, s) } // the test misses what was not sent

// frame sends a text frame.
func (c *talk) frame(s string) {
	p, err := ws.CompileFrame(ws.NewTextFrame([]byte(s)))
	if err != nil {
		c.t.Error(err)
	}
	c.send(string(p))
}

// wantFrame reads a text frame.
func (c *talk) wantFrame(want string) {
	h, err := ws.ReadHeader(c.in)
	got := make([]byte, min(h.Length, 1000))
	if err == nil {
		_, err = io.ReadFull(c.in, got)
	}
	ws.Cipher(got, h.Mask, 0)
	if err != nil || !h.Masked || h.OpCode != ws.OpText || string(got) != want {
		c.t.Errorf("got %+v with %q, %v; want %q", h, got, err, want)
	}
}

// want reads bytes, given as hex and spaces.
func (c *talk) want(text string) {
	want, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	got := make([]byte, len(want))
	if err == nil {
		_, err = io.ReadFull(c.in, got)
	}
	if err != nil || !bytes.Equal(got, want) {
		c.t.Errorf("got %x, %v; want %x", got, err, want)
	}
}

// payload is the message of that number.
func payload(n int64) string { return string(AppendPayload(nil, n, 0)) }

// mqttMessage is message n of QoS 1 on news.
func mqttMessage(n int64) string {
	return string(AppendMQTTPublish(nil, uint16(n), "news", []byte(payload(n))))
}

// mqttHello is a connect of client x0, with those flags, and a subscribe to news.
func mqttHello(flags, qos string) string {
	return "10 0e 0004 4d515454 04 " + flags + " 0000 0002 7830   82 09 0001 0004 6e657773 " + qos
}

// centrifugePush is message n as the server writes it.
func centrifugePush(n int64) string {
	return fmt.Sprintf(`{"push":{"channel":"news","pub":{"data":%s,"offset":%d}}}`, payload(n), n)
}

const centrifugeHello = `{"id":1,"connect":{}}` + "\n" + `{"id":2,"subscribe":{"channel":"news"`

// peerCase is a protocol: connections of one client one after the other, each with two messages.
type peerCase struct {
	dialect     Dialect
	connections []func(c *talk)
}

var peerCases = map[string]peerCase{
	"nchan": {&Nchan{}, []func(*talk){func(c *talk) {
		c.upgrade("/sub/news")
		c.frame(payload(1))
		c.frame(payload(2))
	}}},
	"socket.io": {&SocketIO{}, []func(*talk){func(c *talk) {
		c.upgrade("/socket.io/?EIO=4&transport=websocket")
		c.frame(`0{"sid":"x","upgrades":[],"pingInterval":25000,"pingTimeout":20000,"maxPayload":1000000}`)
		c.wantFrame("40")
		c.frame(`40{"sid":"y"}`)
		c.wantFrame(`420["subscribe","news"]`)
		c.frame(`430[]`)
		c.frame("2")
		c.wantFrame("3")
		c.frame(`42["message",` + payload(1) + `]`)
		c.frame(`42["message",` + payload(2) + `]`)
	}}},
	"mqtt of QoS 0": {&MQTT{}, []func(*talk){func(c *talk) {
		c.want(mqttHello("02", "00"))
		c.send("\x20\x02\x00\x00\x90\x03\x00\x01\x00")
		c.send("\x30\x60\x00\x04news" + payload(1) + "\x30\x60\x00\x04news" + payload(2))
	}}},
	"mqtt of QoS 1": {&MQTT{QoS: 1}, []func(*talk){
		func(c *talk) {
			c.want(mqttHello("00", "01"))
			c.send("\x20\x02\x00\x00\x90\x03\x00\x01\x01" + mqttMessage(1))
			c.want("40 02 0001")
			c.send(mqttMessage(2))
			c.want("40 02 0002")
		},
		func(c *talk) {
			c.want(mqttHello("00", "01"))
			c.send("\x20\x02\x01\x00" + mqttMessage(3) + mqttMessage(4) + "\x90\x03\x00\x01\x01")
			c.want("40 02 0003 40 02 0004")
		},
	}},
	"centrifuge": {&Centrifuge{}, []func(*talk){
		func(c *talk) {
			c.upgrade("/connection/websocket")
			c.wantFrame(centrifugeHello + "}}")
			c.frame(`{"id":1,"connect":{"client":"x","ping":25,"pong":true}}` + "\n" +
				`{"id":2,"subscribe":{"recoverable":true,"epoch":"ab","positioned":true}}`)
			c.frame("{}")
			c.wantFrame("{}")
			c.frame(centrifugePush(1) + "\n" + centrifugePush(2))
		},
		func(c *talk) {
			c.upgrade("/connection/websocket")
			c.wantFrame(centrifugeHello + `,"recover":true,"epoch":"ab","offset":2}}`)
			c.frame(`{"id":1,"connect":{}}`)
			c.frame(fmt.Sprintf(`{"id":2,"subscribe":{"epoch":"ab","recovered":true,"publications":[{"data":%s,"offset":3}]}}`, payload(3)))
			c.frame(`{"push":{"channel":"news","pub":{"offset":4,"data":` + payload(4) + `}}}`)
		},
	}},
}

// host plays the scripts, on one connection each, and holds each until the client is gone.
func host(t *testing.T, scripts []func(*talk)) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, script := range scripts {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c := &talk{t, conn, bufio.NewReader(conn)}
			script(c)
			_, _ = io.Copy(io.Discard, c.in)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _, _ = l.Close(), <-done })
	return l.Addr().String()
}

// swarmOfOne is client x0 on channel news.
func swarmOfOne(t *testing.T, addr string, d Dialect) *Swarm {
	s, err := New(Options{Addr: addr, Dialect: d, Connections: 1, Channels: []string{"news"}, Client: "x"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestPeers speaks each protocol with a script: what is said, what is understood, and how a client comes back.
func TestPeers(t *testing.T) {
	for name, tc := range peerCases {
		t.Run(name, func(t *testing.T) {
			s := swarmOfOne(t, host(t, tc.connections), tc.dialect)
			var pushed []int64
			for i := range tc.connections {
				connect := s.Open
				if i > 0 {
					connect = s.Reopen
				}
				err := connect(t.Context(), func() {})
				if err == nil {
					pushed = append(pushed, int64(2*i+1), int64(2*i+2))
					err = s.Until(t.Context(), "receive", func() bool { return s.received == int64(len(pushed)) })
				}
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Cut(); err != nil {
					t.Error(err)
				}
			}
			if wrong, faults := s.Verify([][]int64{pushed}); wrong > 0 {
				t.Error(faults)
			}
		})
	}
}

// TestPeersRefuse gives the dialects what is wrong; each must tell it.
func TestPeersRefuse(t *testing.T) {
	for _, tc := range []struct {
		dialect    Dialect
		body, want string
	}{
		{&SocketIO{}, `44{"message":"no"}`, `the server sent 44{"message":"no"}`},
		{&SocketIO{}, `41`, "the server sent 41"},
		{&MQTT{}, "\x20\x02\x00\x05", "the server sent 20020005"},
		{&MQTT{}, "\x90\x03\x00\x01\x80", "the server sent 9003000180"},
		{&MQTT{QoS: 1}, "\x90\x03\x00\x01\x00", "the server sent 9003000100"},
		{&MQTT{}, "\x30\x01\x00", "unexpected EOF"},
		{&MQTT{}, "\x32\x06\x00\x04news", "unexpected EOF"},
		{&MQTT{}, "\x34\x08\x00\x04news\x00\x01", "quality of service 2"},
		{&Centrifuge{}, `{"id":2,"error":{"code":103,"message":"permission denied"}}`, "error 103: permission denied"},
		{&Centrifuge{}, `{"push":{"channel":"news","unsubscribe":{}}}`, "the server sent"},
		{&Centrifuge{}, `hello`, "invalid character"},
	} {
		s := swarmOfOne(t, "127.0.0.1:1", tc.dialect)
		if err := tc.dialect.Read(Link{s, 0}, []byte(tc.body)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%T, %q: got %v, want something about %q", tc.dialect, tc.body, err, tc.want)
		}
	}
	for _, tc := range []struct {
		dialect Dialect
		body    string
	}{
		{&MQTT{QoS: 1}, "\x20\x02\x00\x00"},
		{&Centrifuge{}, `{"id":2,"subscribe":{"epoch":"other"}}`},
	} {
		s := swarmOfOne(t, "127.0.0.1:1", tc.dialect)
		s.reopened = true
		if err := tc.dialect.Read(Link{s, 0}, []byte(tc.body)); err == nil || !strings.Contains(err.Error(), "has not kept") {
			t.Errorf("%T comes back and is told nothing of what was missed: got %v", tc.dialect, err)
		}
	}
	for _, tc := range []struct {
		dialect Dialect
		body    string
	}{
		{&MQTT{}, "\x30\x07\x00\x04oldsx"},
		{&Centrifuge{}, `{"push":{"channel":"olds","pub":{"data":{},"offset":1}}}`},
		{&Nchan{}, `{}`},
		{&SocketIO{}, `42["message",{}]`},
	} {
		s := swarmOfOne(t, "127.0.0.1:1", tc.dialect)
		if err := tc.dialect.Read(Link{s, 0}, []byte(tc.body)); err != nil || s.ledger.wrong != 1 {
			t.Errorf("%T, %q: got %v and %d faults, want one", tc.dialect, tc.body, err, s.ledger.wrong)
		}
	}
}

func TestMQTTCut(t *testing.T) {
	for _, size := range []int{0, 1, 127, 128, 16_383, 16_384} {
		packet := AppendMQTT(nil, mqttPublish, make([]byte, size))
		u, n, err := (&MQTT{}).Cut(append(packet, 0xC0))
		if err != nil || n != len(packet) || !bytes.Equal(u.Body, packet) {
			t.Errorf("%d bytes: got %d of %d, %v", size, n, len(packet), err)
		}
		if _, n, err := (&MQTT{}).Cut(packet[:len(packet)-1]); n != 0 || err != nil {
			t.Errorf("%d bytes but one: got %d, %v", size, n, err)
		}
	}
	for _, wrong := range []string{"\x30\xff\xff\xff\xff", "\x30\xff\xff\xff\x7f"} {
		if _, _, err := (&MQTT{}).Cut([]byte(wrong)); err == nil {
			t.Errorf("%x was taken", wrong)
		}
	}
}

// FuzzPeers gives the dialects any bytes: none may panic, whatever it makes of them.
func FuzzPeers(f *testing.F) {
	for _, seed := range []string{mqttMessage(1), centrifugePush(1), `42["message",{}]`, "\x90\x03\x00\x01\x00", "{}\n{}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, tc := range peerCases {
			s := swarmOfOne(t, "127.0.0.1:1", tc.dialect)
			_ = tc.dialect.Read(Link{s, 0}, data)
			if u, n, err := tc.dialect.Cut(data); err == nil && n > 0 && (n > len(data) || len(u.Body) > n) {
				t.Errorf("%T took %d of %d bytes", tc.dialect, n, len(data))
			}
		}
	})
}
