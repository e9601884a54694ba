package transport

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"switchboard/broker/loop"
	"switchboard/internal/await"
	"switchboard/internal/wire"
)

func TestGateOnTCP(t *testing.T) {
	speakJSON(t) // the Poller refuses in JSON, before it knows the dialect
	service := lineWay.serve(t, setup{room: 1})
	first, s := service.connect()
	second := service.dial()
	second.write([]byte(`{"type":"connect"}` + "\n")) // the message may arrive before or after the refusal is sent
	second.wantClosing("overloaded", 0, "no room for another connection", overloadedMS)
	_ = second.Close()

	_ = first.Close()
	s.want(event{"closed", ""})
	s.do(func() {}) // runs after the place is given back
	third, s := service.connect()
	third.write([]byte("x\n"))
	s.want(event{"message", "x"})
	service.stop()
	await.True(t, "all places are free", func() bool { return service.gate.count.Load() == 0 })
}

// TestRefusedWithoutLinger checks that clients receive the reason even if maxRefused connections
// linger already.
func TestRefusedWithoutLinger(t *testing.T) {
	speakJSON(t)
	service := lineWay.serve(t, setup{room: 1})
	service.connect()
	for range maxRefused + 5 {
		p := service.dial()
		if e := p.read(); !strings.Contains(e.text, `"overloaded"`) {
			t.Fatalf("the peer reads %v", e)
		}
	}
}

func TestGateOnHTTP(t *testing.T) {
	over(t, []way{webWay, handedWay}, func(t *testing.T, w way) {
		service := w.serve(t, setup{room: 1})
		first, s := service.connect()
		second := service.dial()
		second.write([]byte(upgradeRequest(wsPath, "")))
		resp := second.response()
		if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
			t.Fatalf("above the limit: %s, Retry-After %q", resp.Status, resp.Header.Get("Retry-After"))
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		third := service.dial() // takes the only place of the reserve from the second
		second.want(event{"end", ""})
		third.write([]byte(upgradeRequest(wsPath, "")))
		if resp := third.response(); resp.StatusCode != http.StatusServiceUnavailable {
			t.Fatalf("above the limit, later: %s", resp.Status)
		}

		_ = first.Close()
		s.want(event{"closed", ""})
		s.do(func() {}) // runs after the place is given back
		fourth, s := service.connect()
		fourth.write(fourth.message("x"))
		s.want(event{"message", "x"})
	})
}

func TestHandshakeExpires(t *testing.T) {
	for name, sent := range map[string]string{
		"nothing":          "",
		"half a handshake": "GET /ws HTTP/1.1\r\nHost: broker.example\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			service := lineWay.serve(t, setup{handshake: time.Nanosecond})
			p := service.dial()
			if sent != "" {
				p.write([]byte(sent))
			}
			p.want(event{"end", ""})
			service.stop()
			if len(service.sessions) != 0 {
				t.Error("a session was made")
			}
			await.True(t, "all places are free", func() bool { return service.gate.count.Load() == 0 })
		})
	}
}

func TestRefusedHandshakes(t *testing.T) {
	tests := map[string]struct {
		request     string
		onTCP, http int // status
	}{
		"bad origin":     {upgradeRequest("/ws", "Origin: https://bad.example\r\n"), 403, 403},
		"bad host":       {strings.Replace(upgradeRequest("/ws", "Origin: https://a.example\r\n"), "broker.example", "other", 1), 403, 403},
		"wrong path":     {upgradeRequest("/other", ""), 404, 404},
		"no upgrade":     {"GET /ws HTTP/1.1\r\nHost: broker.example\r\n\r\n", 400, 426},
		"HTTP/1.0":       {"GET /ws HTTP/1.0\r\nHost: broker.example\r\n\r\n", 505, 426},
		"no path":        {"GET\r\n\r\n", 400, 400},
		"no header":      {"GET /ws HTTP/1.1\r\nHost\r\n\r\n", 400, 400},
		"old version":    {strings.Replace(upgradeRequest("/ws", ""), ": 13", ": 8", 1), 426, 400},
		"bad key":        {strings.Replace(upgradeRequest("/ws", ""), "dGhl", "", 1), 400, 400},
		"endless header": {"GET /ws HTTP/1.1\r\nX: " + strings.Repeat("x", 2<<20), 431, 431},
		"other scheme":   {upgradeRequest("ftp://x/y", ""), 404, 404},
		"control bytes":  {"GET /ws\x00 HTTP/1.1\r\nHost: broker.example\r\n\r\n", 404, 400},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for w, status := range map[*way]int{&pollWay: test.onTCP, &webWay: test.http, &handedWay: test.http} {
				service := w.serve(t, setup{})
				p := service.dial()
				go func() { _, _ = p.Write([]byte(test.request)) }()
				if resp := p.response(); resp.StatusCode != status {
					t.Errorf("%s: %s, want %d", w.name, resp.Status, status)
				}
				_ = p.Close()
				service.stop()
				if len(service.sessions) != 0 {
					t.Errorf("%s: a session was made", w.name)
				}
			}
		})
	}
}

// TestOtherHTTPOnTCP checks that a request with another method than GET is refused, and that no
// line of it reaches a session.
func TestOtherHTTPOnTCP(t *testing.T) {
	for _, method := range []string{"POST", "OPTIONS", "PUT", "DELETE", "HEAD", "CONNECT"} {
		service := lineWay.serve(t, setup{})
		p := service.dial()
		p.write([]byte(method + " / HTTP/1.1\r\nHost: x\r\n\r\n{\"type\":\"connect\"}\n"))
		if resp := p.response(); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s", method, resp.Status)
		}
		_ = p.Close()
		service.stop()
		if len(service.sessions) != 0 {
			t.Errorf("%s: a session was made", method)
		}
	}
}

// TestHandshakeInPieces sends a handshake with a long token, and a message without waiting for the
// answer, byte by byte and in one piece.
func TestHandshakeInPieces(t *testing.T) {
	over(t, socketWays, func(t *testing.T, w way) {
		service := w.serve(t, setup{})
		token := strings.Repeat("t", 6000)
		for _, sizes := range [][]int{{1}, {1 << 30}} {
			p := service.dial()
			p.writeCut(join([]byte(upgradeRequest("/ws?token="+token, "")), p.message("early")), sizes...)
			if resp := p.response(); resp.StatusCode != http.StatusSwitchingProtocols {
				t.Fatalf("handshake: %s", resp.Status)
			}
			s := service.session()
			s.want(event{"message", "early"})
			if len(s.first) != 1 || s.first[0].Token != token {
				t.Errorf("the handshake stands for %d requests, want one with the token", len(s.first))
			}
		}
	})
}

func TestPortIsTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, ctx := range []context.Context{t.Context(), ended} {
		p := NewPoller(2, 0, Limits{}, Dialects{}, nil, zerolog.Nop())
		ran := make(chan struct{})
		p.Loops()[1].Post(func() { close(ran) })
		if err := p.Run(ctx, l.Addr().String()); err == nil || !strings.Contains(err.Error(), l.Addr().String()) {
			t.Errorf("Run on a port that is taken: %v", err)
		}
		<-ran
	}
}

// TestTheEngineEnds checks that Run returns an error if the engine ends by itself, as it does when
// it cannot accept.
func TestTheEngineEnds(t *testing.T) {
	p := NewPoller(1, 0, Limits{Gate: NewGate(1)}, Dialects{}, nil, zerolog.Nop())
	done := make(chan error, 1)
	go func() { done <- p.Run(t.Context(), "127.0.0.1:0") }()
	<-p.Booted()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_ = p.engine.Stop(ended)
	if err := <-done; !errors.Is(err, errStopped) {
		t.Errorf("Run returns %v, want an error", err)
	}
}

func TestRunStopsAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		p := NewPoller(2, 0, Limits{}, Dialects{}, nil, zerolog.Nop())
		if err := p.Run(ctx, "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTasksWithoutConnections posts tasks to loops while their first connections arrive, also from
// other tasks. A loop runs without gnet until its first connection.
func TestTasksWithoutConnections(t *testing.T) {
	const loops = 4
	sessions := make(chan *session, loops)
	p := NewPoller(loops, 3, Limits{Message: messageLimit, Gate: NewGate(loops)}, dialects(), func(l *loop.Loop, c Conn, _ []wire.Request) Receiver {
		s := &session{t: t, loop: l, conn: c, events: make(chan event, 10)}
		sessions <- s
		return s
	}, zerolog.Nop())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx, "127.0.0.1:0") }()
	<-p.Booted()
	var chain func(l *loop.Loop, n int, end chan struct{})
	chain = func(l *loop.Loop, n int, end chan struct{}) {
		l.Post(func() {
			if n == 0 {
				close(end)
				return
			}
			chain(l, n-1, end)
		})
	}
	var ends []chan struct{}
	for i, l := range p.Loops() {
		if l.Index != 3+i {
			t.Errorf("loop %d has index %d", i, l.Index)
		}
		end := make(chan struct{})
		ends = append(ends, end)
		chain(l, 1000, end)
	}
	for range loops {
		c, err := net.Dial("tcp", p.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = c.Write(spoken.Stream([]byte("hello")))
		(<-sessions).want(event{"message", "hello"})
	}
	for _, end := range ends {
		<-end
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	for _, l := range p.Loops() {
		end := make(chan struct{})
		chain(l, 10, end)
		<-end
	}
}

func TestCompression(t *testing.T) {
	service := webWay.serve(t, setup{compress: true})
	p := service.dial()
	p.write([]byte(upgradeRequest("/ws", "Sec-WebSocket-Extensions: permessage-deflate\r\n")))
	resp := p.response()
	if ext := resp.Header.Get("Sec-WebSocket-Extensions"); !strings.Contains(ext, "no_context_takeover") {
		t.Errorf("negotiated %q, want no_context_takeover: with context takeover each connection keeps a window in memory", ext)
	}
}

func TestHijackRefuses(t *testing.T) {
	var socket net.Conn
	if _, _, err := (smallBuffers{brokenHijacker{}, &socket, new(frameCounter)}).Hijack(); !errors.Is(err, errBroken) {
		t.Errorf("Hijack: %v", err)
	}
	if _, _, err := (smallBuffers{nil, &socket, new(frameCounter)}).Hijack(); err == nil {
		t.Error("Hijack succeeds without a http.Hijacker")
	}
}

var errBroken = errors.New("broken")

type brokenHijacker struct{ http.ResponseWriter }

func (brokenHijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, errBroken }
