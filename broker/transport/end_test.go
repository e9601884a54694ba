package transport

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/ws"
	"github.com/rs/zerolog"

	"switchboard/broker/loop"
	"switchboard/internal/await"
	"switchboard/internal/wire"
)

// TestCloseSaysWhy checks the reason and the status of each close.
func TestCloseSaysWhy(t *testing.T) {
	over(t, allWays, func(t *testing.T, w way) {
		service := w.serve(t, setup{})
		for reason, status := range map[wire.CloseReason]int{
			wire.CloseDraining: 4001, wire.CloseSuperseded: 4002, wire.CloseUnauthorized: 4003, wire.CloseExpired: 4004,
			wire.CloseDisconnected: 4005, wire.CloseBadRequest: 4006, wire.CloseSlow: 4007, wire.CloseIdle: 4008,
			wire.CloseOverloaded: 4009,
		} {
			p, s := service.connect()
			s.do(func() {
				s.conn.Write(batchOf(`{"before":true}`))
				s.conn.Close(reason, "that is why", 1840)
				s.conn.Write(batchOf(`{"after":true}`)) // a closed connection writes nothing
				s.conn.Ping()
				s.conn.Close(wire.CloseIdle, "twice", 0)
			})
			p.want(event{"message", `{"before":true}`})
			p.wantClosing(string(reason), status, "that is why", 1840)
		}
	})
}

// TestCloseWhileThePeerSends closes a connection with unread input while more arrives. The system
// would reset it if it were closed at once.
func TestCloseWhileThePeerSends(t *testing.T) {
	over(t, inboundWays, func(t *testing.T, w way) {
		service := w.serve(t, setup{react: func(s *session, e event) {
			s.conn.Close(wire.CloseOverloaded, "too much", 0)
		}})
		p, s := service.connect()
		message := p.message(strings.Repeat("x", 1000))
		for range 500 {
			p.write(message)
		}
		p.wantClosing("overloaded", 4009, "too much", 0)
		_ = p.Close()
		service.stop()
		s.want(event{"message", strings.Repeat("x", 1000)})
		s.wantSilence()
	})
}

// TestClosedConnectionReadsLittle has a peer that sends without end. After Close the broker must
// not read on until lingerTime is over: it drops some input and resets the connection. On Linux,
// the peer can read the reason even then.
func TestClosedConnectionReadsLittle(t *testing.T) {
	const enough = 64 << 20 // much more than linger.Bytes and the system's buffers
	over(t, inboundWays, func(t *testing.T, w way) {
		for name, text := range map[string]string{"messages": strings.Repeat("x", 1000), "pings": ""} {
			if name == "pings" && !w.framed {
				continue
			}
			t.Run(name, func(t *testing.T) {
				service := w.serve(t, setup{react: func(s *session, e event) {
					s.conn.Close(wire.CloseOverloaded, "too much", 0)
				}})
				p, s := service.connect()
				p.write(p.message("first"))
				s.want(event{"message", "first"})
				one := p.message(text)
				if name == "pings" {
					one = clientFrame(true, ws.OpPing, "")
				}
				block := bytes.Repeat(one, 64<<10/len(one))
				sent, err := 0, error(nil)
				for sent < enough && err == nil {
					var n int
					n, err = p.Write(block)
					sent += n
				}
				if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
					t.Fatalf("the broker takes %d MB after the end: %v", sent>>20, err)
				}
				if got := p.read(); !strings.Contains(got.text, "too much") {
					t.Errorf("the peer reads %v instead of the reason", got)
				}
				_ = p.Close()
				service.stop()
				s.wantSilence()
			})
		}
	})
}

// TestClosedConnectionInflatesNothing sends compressed messages that are not deflated, after Close
// and while output waits. The broker drops them like all input, so the peer still gets the output.
func TestClosedConnectionInflatesNothing(t *testing.T) {
	service := webWay.serve(t, setup{compress: true})
	p := service.dial()
	p.write([]byte(upgradeRequest(wsPath, "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover\r\n")))
	if resp := p.response(); resp.Header.Get("Sec-WebSocket-Extensions") == "" {
		t.Fatal("compression is not negotiated")
	}
	s := service.session()
	random := rand.NewChaCha8([32]byte{})
	s.do(func() {
		for range flood / 2 {
			text := make([]byte, 12<<10)
			_, _ = random.Read(text)
			s.conn.Write(batchOf(fmt.Sprintf("%q", base64.StdEncoding.EncodeToString(text)))) // hard to compress
		}
		s.conn.Close(wire.CloseOverloaded, "too much", 0)
	})
	for range 100 {
		f := clientFrame(true, opData(), "\xff\xff\xff\xff no deflated text")
		f[0] |= 0x40 // RSV1: compressed
		p.write(f)
	}
	for messages := 0; ; messages++ {
		h, err := ws.ReadHeader(p.r)
		if err == nil {
			_, err = io.CopyN(io.Discard, p.r, h.Length)
		}
		if err != nil {
			t.Fatalf("after %d of %d messages: %v", messages, flood/2+1, err)
		}
		if h.OpCode == ws.OpClose {
			if messages != flood/2+1 { // with the reason
				t.Errorf("%d messages, want %d", messages, flood/2+1)
			}
			return
		}
	}
}

// TestCloseWithinAccept has a session that closes its connection as soon as it is made.
func TestCloseWithinAccept(t *testing.T) {
	over(t, inboundWays, func(t *testing.T, w way) {
		service := w.serve(t, setup{open: func(s *session) {
			s.conn.Close(wire.CloseUnauthorized, "", 0)
		}})
		p, s := service.connect()
		p.wantClosing("unauthorized", 4003, "", 0)
		_ = p.Close()
		service.stop()
		s.wantSilence()
	})
}

func TestThePeerEnds(t *testing.T) {
	ends := map[string]func(p *peer){
		"both sides":     func(p *peer) { _ = p.Close() },
		"its write side": func(p *peer) { _ = p.CloseWrite() },
		"by a reset":     func(p *peer) { _ = p.SetLinger(0); _ = p.Close() },
		"in the middle of a message": func(p *peer) {
			m := p.message(strings.Repeat("x", 1000))
			p.write(m[:500])
			_ = p.Close()
		},
		"in the middle of too large a message": func(p *peer) {
			m := p.message(strings.Repeat("x", messageLimit*2))
			p.write(m[:messageLimit+1000])
			_ = p.Close()
		},
	}
	over(t, allWays, func(t *testing.T, w way) {
		for name, end := range ends {
			if w.stream && strings.Contains(name, "message") {
				continue
			}
			t.Run(name, func(t *testing.T) {
				service := w.serve(t, setup{})
				p, s := service.connect()
				if !w.stream {
					p.write(p.message("last"))
					s.want(event{"message", "last"})
				}
				end(p)
				s.want(event{"closed", ""})
				s.do(func() { // the session may not know yet
					s.conn.Write(batchOf(`{}`))
					s.conn.Ping()
					s.conn.Close(wire.CloseIdle, "", 0)
				})
				service.stop()
				s.wantSilence()
				await.True(t, "all places are free", func() bool { return service.gate.count.Load() == 0 })
			})
		}
	})
}

// TestThePeerIsGoneWithinAWrite checks a write to a peer that is gone: gnet closes the connection
// within the call.
func TestThePeerIsGoneWithinAWrite(t *testing.T) {
	over(t, allWays, func(t *testing.T, w way) {
		p, s := w.serve(t, setup{}).connect()
		reset := make(chan struct{})
		s.loop.Post(func() { // blocks the loop, so that it does not read the end of the connection first
			<-reset
			for range 100 {
				s.conn.Write(batchOf(`{"lost":true}`))
				s.conn.Ping()
				s.conn.Backlogged()
			}
		})
		_ = p.SetLinger(0)
		_ = p.Close()
		close(reset)
		s.want(event{"closed", ""})
	})
}

// TestTheServiceEnds stops a service with open connections. Their sessions receive Closed.
func TestTheServiceEnds(t *testing.T) {
	over(t, allWays, func(t *testing.T, w way) {
		service := w.serve(t, setup{linger: time.Millisecond})
		p, s := service.connect()
		service.stop()
		s.want(event{"closed", ""})
		s.wantSilence()
		if e := p.read(); e.kind != "end" && e.kind != "failure" {
			t.Fatalf("the peer reads %v", e)
		}
		s.do(func() {}) // tasks still run
	})
}

func TestThePeerSaysClose(t *testing.T) {
	p, s := pollWay.serve(t, setup{}).connect()
	p.write(join(clientFrame(true, ws.OpClose, "\x0f\xa0bye"), p.message("after")))
	p.want(event{"close", "4000"}, event{"end", ""})
	s.want(event{"closed", ""})
	_ = p.Close()

	p, s = webWay.serve(t, setup{}).connect()
	p.write(join(clientFrame(true, ws.OpClose, "\x0f\xa0bye"), p.message("after")))
	p.want(event{"close", "4000 bye"})
	s.want(event{"closed", ""})
}

// TestPeerDoesNotReadTheReason drops a peer that writes but does not read after Close.
func TestPeerDoesNotReadTheReason(t *testing.T) {
	over(t, inboundWays, func(t *testing.T, w way) {
		service := w.serve(t, setup{linger: 10 * time.Millisecond})
		p, s := service.connect()
		s.do(func() {
			for i := range flood {
				s.conn.Write(batchOf(numbered(i)))
			}
			if !s.conn.Backlogged() {
				t.Error("the system's buffers took everything, so nothing is tested")
			}
			s.conn.Close(wire.CloseSlow, "", 0)
		})
		var err error
		for err == nil {
			_, err = p.Write(p.message("x"))
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("the connection stays open")
		}
		service.stop()
		s.wantSilence()
		await.True(t, "all places are free", func() bool { return service.gate.count.Load() == 0 })
	})
}

// TestThePeerIsGoneWithinAccept has a session that writes within Accept, to a peer that is gone.
func TestThePeerIsGoneWithinAccept(t *testing.T) {
	s := &session{t: t, events: make(chan event, 10)}
	p := NewPoller(1, 0, Limits{Message: 100}, dialects(), func(_ *loop.Loop, c Conn, _ []wire.Request) Receiver {
		c.Write(batchOf("{}"))
		return s
	}, zerolog.Nop())
	conn := &memoryConn{}
	c := &pollerConn{loop: p.loops[0], conn: conn}
	conn.onWrite = c.onClose
	conn.in.Write(spoken.Stream([]byte("first")))
	c.read()
	s.want(event{"closed", ""})
	s.wantSilence()
}
