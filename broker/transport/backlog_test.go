package transport

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gobwas/ws"

	"switchboard/internal/wire"
)

// flood is how many numbered messages overflow the system's buffers between two sockets. They have
// 16 MiB in all.
const flood = 1024

// numbered returns message i, which has 16 KiB.
func numbered(i int) string {
	return fmt.Sprintf(`{"n":%d,"x":"%s"}`, i, strings.Repeat("x", 16<<10))
}

// kept returns how many bytes the transport holds for the peer. It is called on the loop.
func kept(c Conn) int {
	switch c := c.(type) {
	case *pollerConn:
		return c.conn.OutboundBuffered()
	case *webConn:
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.queued
	case *streamConn:
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.queued
	}
	panic("unknown connection")
}

// TestBacklog checks that nothing is lost and that the transport keeps few bytes. The session
// writes until it is backed up. Only then the peer begins to read.
func TestBacklog(t *testing.T) {
	over(t, allWays, func(t *testing.T, w way) {
		var written, most, stops int
		stopped := make(chan struct{})
		pump := func(s *session) {
			for written < flood && !s.conn.Backlogged() {
				s.conn.Write(batchOf(numbered(written)))
				written++
				most = max(most, kept(s.conn))
			}
			if written < flood {
				if stops++; stops == 1 {
					close(stopped)
				}
			}
		}
		p, s := w.serve(t, setup{react: func(s *session, e event) {
			if e.kind == "writable" {
				pump(s)
			}
		}}).connect()
		s.do(func() { pump(s) })
		<-stopped
		for i := range flood {
			p.want(event{"message", numbered(i)})
		}
		if !w.stream {
			p.write(p.message("the peer has read everything"))
			for e := s.next(); e.kind == "writable"; e = s.next() {
			}
		}
		s.do(func() {
			if bound := maxQueued + 2*len(numbered(0)); most > bound {
				t.Errorf("the transport keeps %d bytes, want at most %d", most, bound)
			}
			if !w.stream && s.conn.Backlogged() {
				t.Error("the backlog does not end")
			}
		})
	})
}

// TestPongsDoNotPileUp pings from a peer that does not read. The transport must not keep the pongs.
func TestPongsDoNotPileUp(t *testing.T) {
	over(t, socketWays, func(t *testing.T, w way) {
		p, s := w.serve(t, setup{}).connect()
		var before int
		s.do(func() {
			for i := range flood {
				s.conn.Write(batchOf(numbered(i)))
			}
			if !s.conn.Backlogged() {
				t.Error("the system's buffers took everything, so nothing is tested")
			}
			before = kept(s.conn)
		})
		for range 1000 {
			p.write(clientFrame(true, ws.OpPing, strings.Repeat("x", 125)))
		}
		p.write(p.message("there"))
		s.want(event{"message", "there"})
		s.do(func() {
			if s.control < 1000 || s.control > 1001 { // the library reads ahead
				t.Errorf("%d pings are counted, want 1000", s.control)
			}
			if after := kept(s.conn); after > before {
				t.Errorf("%d bytes were kept before the pings, and %d after", before, after)
			}
		})
		for i := range flood {
			p.want(event{"message", numbered(i)})
		}
	})
}

// TestCloseAfterABacklog sends the reason to a peer that must read a backlog first.
func TestCloseAfterABacklog(t *testing.T) {
	over(t, allWays, func(t *testing.T, w way) {
		service := w.serve(t, setup{})
		p, s := service.connect()
		s.do(func() {
			for i := range flood {
				s.conn.Write(batchOf(numbered(i)))
			}
			if !s.conn.Backlogged() {
				t.Error("the system's buffers took everything, so nothing is tested")
			}
			s.conn.Close(wire.CloseSuperseded, "", 0)
		})
		if !w.stream {
			p.write(p.message("still here"))
		}
		for i := range flood {
			p.want(event{"message", numbered(i)})
		}
		p.wantClosing("superseded", 4002, "", 0)
		_ = p.Close()
		service.stop()
		s.wantSilence()
	})
}
