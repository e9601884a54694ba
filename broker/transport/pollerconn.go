package transport

import (
	"bytes"
	"net/http"

	"github.com/panjf2000/gnet/v2"
	"golang.org/x/sys/unix"

	"switchboard/broker/limit"
	"switchboard/internal/wire"
)

// state is how far a connection of the Poller has come.
type state uint8

const (
	sniffing  state = iota // nothing read yet: a line, or the first byte of "GET"
	upgrading              // reading the WebSocket handshake
	lines                  // raw TCP
	frames                 // WebSocket
	lingering              // closed from here; the peer may still read why
)

// maxHandshake bounds the bytes of a WebSocket handshake.
const maxHandshake = 8 << 10

// pollerConn is one connection of the Poller. It lives on its loop. Each takes 64 bytes, for which the allocator has
// room; the next length is 80.
type pollerConn struct {
	loop   *pollerLoop
	conn   gnet.Conn   // nil once closed: its descriptor may be somebody else's
	to     Receiver    // nil before the handshake and after the end
	part   *assembly   // a message that comes in fragments, or is too large, is under way
	handed *handedOver // from net/http, as long as something of it is unread

	state    state
	reserved bool       // turned away: its place is one of the reserve
	known    bool       // has sent its first message, or a URL that stands for it
	address  limit.Slot // among the addresses
}

// read hands every whole message on; what is incomplete stays in gnet's buffer.
func (c *pollerConn) read() {
	for c.conn != nil {
		buf := c.unread()
		if len(buf) == 0 {
			return
		}
		n := 0
		switch c.state {
		case sniffing:
			c.sniff(buf[0])
			continue
		case upgrading:
			n = c.upgrade(buf)
		case lines:
			n = c.readLine(buf)
		case frames:
			n = c.readFrame(buf)
		case lingering:
			n = len(buf)
		}
		if n == 0 || c.conn == nil {
			return
		}
		c.discard(n)
	}
}

// sniff tells what a connection speaks by its first byte. No JSON begins with a capital letter:
// that is another method of HTTP than GET. A web page can have its visitor's browser send such a
// request, with lines of its own in the body, so none of it reaches a session.
func (c *pollerConn) sniff(first byte) {
	switch {
	case first == 'G':
		c.state = upgrading
	case first >= 'A' && first <= 'Z':
		c.refuse(http.StatusBadRequest, "this port takes JSON lines, and WebSocket at GET /ws; calls belong to the HTTP port")
	default:
		c.open(lines, Hello{})
	}
}

// open makes the session.
func (c *pollerConn) open(s state, hello Hello) {
	c.state, c.known = s, hello.connects()
	c.loop.awaitNoMore(c)
	to := c.loop.poller.accept(c.loop.Loop, c, hello)
	switch {
	case c.state == lingering: // the session closed it at once
	case c.conn == nil: // the peer went while the session wrote
		to.Closed()
	default:
		c.to = to
	}
}

// readLine takes one line from buf and returns how many bytes that was; 0 means more
// must come.
func (c *pollerConn) readLine(buf []byte) int {
	limit := c.limit()
	end := bytes.IndexByte(buf, '\n')
	switch {
	case c.part != nil && end < 0:
		c.to.Control(1, len(buf))
		return len(buf)
	case c.part != nil:
		c.part = nil
		c.tooLarge()
		return end + 1
	case end < 0 && len(buf) > limit:
		c.part = &assembly{over: true}
		c.to.Control(1, len(buf))
		return len(buf)
	case end < 0:
		return 0
	case end > limit:
		c.to.Control(1, end)
		c.tooLarge()
		return end + 1
	}
	if line := bytes.TrimSpace(buf[:end]); len(line) > 0 {
		c.receive(line)
	} else {
		c.to.Control(1, end+1)
	}
	return end + 1
}

// limit returns the most bytes of the next message.
func (c *pollerConn) limit() int { return c.loop.poller.limits.message(!c.known) }

// receive hands a message on.
func (c *pollerConn) receive(message []byte) {
	c.known = true
	c.to.Receive(message)
}

// tooLarge tells of a message that was skipped.
func (c *pollerConn) tooLarge() {
	c.known = true
	if c.to != nil { // the session may have closed the connection at one of its pieces
		c.to.TooLarge()
	}
}

// Write is Conn's.
func (c *pollerConn) Write(b *wire.Batch) {
	if c.state == frames {
		c.send(b.WebSocket())
	} else {
		c.send(b.Line())
	}
}

// send writes p. gnet closes the connection within the call when the peer is gone.
func (c *pollerConn) send(p []byte) {
	if c.conn == nil || c.state == lingering {
		return
	}
	if c.conn.OutboundBuffered() == 0 {
		if p = p[rawWrite(c.conn.Fd(), p):]; len(p) == 0 {
			return
		}
	}
	_, _ = c.conn.Write(p) // keeps what the socket does not take, or finds the error
	if c.conn != nil && c.conn.OutboundBuffered() > 0 {
		c.loop.lag(c)
	}
}

// Backlogged is Conn's.
func (c *pollerConn) Backlogged() bool { return c.conn != nil && c.conn.OutboundBuffered() > 0 }

// Ping is Conn's: a ping frame, or a ping message on TCP.
func (c *pollerConn) Ping() {
	if c.state == frames {
		c.send(pingFrame)
	} else {
		c.send(pingLine)
	}
}

// RemoteAddr is Conn's.
func (c *pollerConn) RemoteAddr() string {
	if c.conn == nil || c.conn.RemoteAddr() == nil {
		return ""
	}
	return c.conn.RemoteAddr().String()
}

var (
	pingFrame = []byte{0x89, 0}
	pingLine  = wire.Event{Type: wire.TypePing}.Encode().Line()
)

// Close is Conn's. The write side is shut and the connection lingers until the peer has
// read why: closing at once, with bytes of the peer unread, would reset the connection and take
// the reason with it.
func (c *pollerConn) Close(reason wire.CloseReason, detail string, afterMS int64) {
	if c.state == lingering {
		return
	}
	last := closing(reason, detail, afterMS)
	if c.state == frames {
		c.send(append(bytes.Clone(last.WebSocket()), closeFrame(reason.Status(), string(reason))...))
	} else {
		c.send(last.Line())
	}
	c.linger()
}

// linger ends the connection from this side. What gnet still holds goes out first, as far as
// the peer reads on; memory for that is bounded by what was written before it was Backlogged.
func (c *pollerConn) linger() {
	c.to, c.part = nil, nil
	c.state = lingering
	if c.conn == nil {
		return
	}
	c.loop.await(c, c.loop.poller.lingerTime)
	if c.conn.OutboundBuffered() == 0 {
		c.shut()
	}
}

// shut ends the write side: everything has gone out.
func (c *pollerConn) shut() { _ = unix.Shutdown(c.conn.Fd(), unix.SHUT_WR) }

// drop closes the socket.
func (c *pollerConn) drop() {
	if c.conn != nil {
		_ = c.conn.EventLoop().Close(c.conn) // ends in gone
	}
}

// gone is called when gnet has let go of the connection.
func (c *pollerConn) gone() {
	c.conn = nil
	to := c.to
	c.to = nil
	c.loop.awaitNoMore(c)
	delete(c.loop.backlog, c)
	c.loop.lagging.Store(int32(len(c.loop.backlog)))
	if to != nil {
		to.Closed()
	}
}
