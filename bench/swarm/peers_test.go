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

// scriptConn is a connection as seen by a script that plays the server.
type scriptConn struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

// upgrade answers a handshake for the path.
func (c *scriptConn) upgrade(path string) {
	r, err := http.ReadRequest(c.in)
	if err != nil || r.URL.String() != path || r.Header.Get("Upgrade") != "websocket" {
		c.t.Errorf("got %v, %v; want an upgrade of %s", r, err, path)
		return
	}
	c.send("HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: " + socketAccept + "\r\n\r\n")
}

func (c *scriptConn) send(s string) { _, _ = io.WriteString(c, s) } // errors show as missing data

// frame sends a text frame.
func (c *scriptConn) frame(s string) {
	p, err := ws.CompileFrame(ws.NewTextFrame([]byte(s)))
	if err != nil {
		c.t.Error(err)
	}
	c.send(string(p))
}

// wantFrame reads a text frame.
func (c *scriptConn) wantFrame(want string) {
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

// want reads the bytes, which are given as hex with spaces.
func (c *scriptConn) want(text string) {
	want, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	got := make([]byte, len(want))
	if err == nil {
		_, err = io.ReadFull(c.in, got)
	}
	if err != nil || !bytes.Equal(got, want) {
		c.t.Errorf("got %x, %v; want %x", got, err, want)
	}
}

// payload returns the payload of message n.
func payload(n int64) string { return string(AppendPayload(nil, n, 0)) }

// mqttMessage returns message n on news with QoS 1.
func mqttMessage(n int64) string {
	return string(AppendMQTTPublish(nil, uint16(n), "news", []byte(payload(n))))
}

// mqttConnectSubscribe returns a connect of client x0 with the flags, and a subscribe to news, as
// hex.
func mqttConnectSubscribe(flags, qos string) string {
	return "10 0e 0004 4d515454 04 " + flags + " 0000 0002 7830   82 09 0001 0004 6e657773 " + qos
}

// centrifugePush returns message n in the server's notation.
func centrifugePush(n int64) string {
	return fmt.Sprintf(`{"push":{"channel":"news","pub":{"data":%s,"offset":%d}}}`, payload(n), n)
}

const centrifugeConnectSubscribe = `{"id":1,"connect":{}}` + "\n" + `{"id":2,"subscribe":{"channel":"news"`

// peerCase is a protocol with successive connections of one client. Each connection receives two
// messages.
type peerCase struct {
	dialect     Dialect
	connections []func(c *scriptConn)
}

var peerCases = map[string]peerCase{
	"nchan": {&Nchan{}, []func(*scriptConn){func(c *scriptConn) {
		c.upgrade("/sub/news")
		c.frame(payload(1))
		c.frame(payload(2))
	}}},
	"socket.io": {&SocketIO{}, []func(*scriptConn){func(c *scriptConn) {
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
	"mqtt of QoS 0": {&MQTT{}, []func(*scriptConn){func(c *scriptConn) {
		c.want(mqttConnectSubscribe("02", "00"))
		c.send("\x20\x02\x00\x00\x90\x03\x00\x01\x00")
		c.send("\x30\x60\x00\x04news" + payload(1) + "\x30\x60\x00\x04news" + payload(2))
	}}},
	"mqtt of QoS 1": {&MQTT{QoS: 1}, []func(*scriptConn){
		func(c *scriptConn) {
			c.want(mqttConnectSubscribe("00", "01"))
			c.send("\x20\x02\x00\x00\x90\x03\x00\x01\x01" + mqttMessage(1))
			c.want("40 02 0001")
			c.send(mqttMessage(2))
			c.want("40 02 0002")
		},
		func(c *scriptConn) {
			c.want(mqttConnectSubscribe("00", "01"))
			c.send("\x20\x02\x01\x00" + mqttMessage(3) + mqttMessage(4) + "\x90\x03\x00\x01\x01")
			c.want("40 02 0003 40 02 0004")
		},
	}},
	"centrifuge": {&Centrifuge{}, []func(*scriptConn){
		func(c *scriptConn) {
			c.upgrade("/connection/websocket")
			c.wantFrame(centrifugeConnectSubscribe + "}}")
			c.frame(`{"id":1,"connect":{"client":"x","ping":25,"pong":true}}` + "\n" +
				`{"id":2,"subscribe":{"recoverable":true,"epoch":"ab","positioned":true}}`)
			c.frame("{}")
			c.wantFrame("{}")
			c.frame(centrifugePush(1) + "\n" + centrifugePush(2))
		},
		func(c *scriptConn) {
			c.upgrade("/connection/websocket")
			c.wantFrame(centrifugeConnectSubscribe + `,"recover":true,"epoch":"ab","offset":2}}`)
			c.frame(`{"id":1,"connect":{}}`)
			c.frame(fmt.Sprintf(`{"id":2,"subscribe":{"epoch":"ab","recovered":true,"publications":[{"data":%s,"offset":3}]}}`, payload(3)))
			c.frame(`{"push":{"channel":"news","pub":{"offset":4,"data":` + payload(4) + `}}}`)
		},
	}},
	"centrifuge map": {&CentrifugeMap{Key: "x"}, []func(*scriptConn){func(c *scriptConn) {
		c.upgrade("/connection/websocket")
		c.wantFrame(centrifugeConnectSubscribe + `,"type":1,"phase":2,"limit":1000}}`)
		c.frame(`{"id":1,"connect":{}}`)
		c.frame(`{"id":2,"subscribe":{"type":1,"epoch":"ab","offset":7,"state":[{"data":{"n":1},"offset":7,"key":"x"}]}}`)
		c.frame(centrifugeEntry(1) + "\n" + centrifugeEntry(2))
	}}},
}

// centrifugeEntry returns change n of entry x in the server's notation.
func centrifugeEntry(n int64) string {
	return fmt.Sprintf(`{"push":{"channel":"news","pub":{"data":%s,"offset":%d,"key":"x","epoch":"ab"}}}`, payload(n), n)
}

// serveScripts runs each script on one connection, and keeps the connection until the client closes
// it.
func serveScripts(t *testing.T, scripts []func(*scriptConn)) (addr string) {
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
			c := &scriptConn{t, conn, bufio.NewReader(conn)}
			script(c)
			_, _ = io.Copy(io.Discard, c.in)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _, _ = l.Close(), <-done })
	return l.Addr().String()
}

// newSwarmOfOne returns a swarm with client x0 on channel news.
func newSwarmOfOne(t *testing.T, addr string, d Dialect) *Swarm {
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

// TestPeers runs each protocol against a script: subscribing, receiving and resuming.
func TestPeers(t *testing.T) {
	for name, tc := range peerCases {
		t.Run(name, func(t *testing.T) {
			s := newSwarmOfOne(t, serveScripts(t, tc.connections), tc.dialect)
			var pushed []int64
			for i := range tc.connections {
				connect := s.Open
				if i > 0 {
					connect = s.Reconnect
				}
				err := connect(t.Context(), func() {})
				if err == nil {
					pushed = append(pushed, int64(2*i+1), int64(2*i+2))
					err = s.Until(t.Context(), "receive", func() bool { return s.received == int64(len(pushed)) })
				}
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Disconnect(); err != nil {
					t.Error(err)
				}
			}
			if wrong, faults := s.Verify([][]int64{pushed}); wrong > 0 {
				t.Error(faults)
			}
		})
	}
}

// TestPeerErrors checks that the dialects report faulty input.
func TestPeerErrors(t *testing.T) {
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
		{&CentrifugeMap{Key: "x"}, `{"id":2,"error":{"code":103,"message":"permission denied"}}`, "error 103: permission denied"},
	} {
		s := newSwarmOfOne(t, "127.0.0.1:1", tc.dialect)
		if err := tc.dialect.Handle(Connection{s, 0}, []byte(tc.body)); err == nil || !strings.Contains(err.Error(), tc.want) {
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
		s := newSwarmOfOne(t, "127.0.0.1:1", tc.dialect)
		s.reconnecting = true
		if err := tc.dialect.Handle(Connection{s, 0}, []byte(tc.body)); err == nil || !strings.Contains(err.Error(), "has not kept") {
			t.Errorf("%T resumes without an error although messages are lost: got %v", tc.dialect, err)
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
		s := newSwarmOfOne(t, "127.0.0.1:1", tc.dialect)
		if err := tc.dialect.Handle(Connection{s, 0}, []byte(tc.body)); err != nil || s.checker.wrong != 1 {
			t.Errorf("%T, %q: got %v and %d faults, want one", tc.dialect, tc.body, err, s.checker.wrong)
		}
	}
}

func TestMQTTNextFrame(t *testing.T) {
	for _, size := range []int{0, 1, 127, 128, 16_383, 16_384} {
		packet := AppendMQTT(nil, mqttPublish, make([]byte, size))
		f, n, err := (&MQTT{}).NextFrame(append(packet, 0xC0))
		if err != nil || n != len(packet) || !bytes.Equal(f.Body, packet) {
			t.Errorf("%d bytes: got %d of %d, %v", size, n, len(packet), err)
		}
		if _, n, err := (&MQTT{}).NextFrame(packet[:len(packet)-1]); n != 0 || err != nil {
			t.Errorf("%d bytes without the last: got %d, %v", size, n, err)
		}
	}
	for _, wrong := range []string{"\x30\xff\xff\xff\xff", "\x30\xff\xff\xff\x7f"} {
		if _, _, err := (&MQTT{}).NextFrame([]byte(wrong)); err == nil {
			t.Errorf("%x was accepted", wrong)
		}
	}
}

// FuzzPeers passes any bytes to the dialects. None may panic.
func FuzzPeers(f *testing.F) {
	for _, seed := range []string{mqttMessage(1), centrifugePush(1), centrifugeEntry(1), `42["message",{}]`, "\x90\x03\x00\x01\x00", "{}\n{}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, tc := range peerCases {
			s := newSwarmOfOne(t, "127.0.0.1:1", tc.dialect)
			_ = tc.dialect.Handle(Connection{s, 0}, data)
			if f, n, err := tc.dialect.NextFrame(data); err == nil && n > 0 && (n > len(data) || len(f.Body) > n) {
				t.Errorf("%T consumed %d of %d bytes", tc.dialect, n, len(data))
			}
		}
	})
}
