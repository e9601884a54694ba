package transport

import (
	"net/http"

	"github.com/panjf2000/gnet/v2"
	"golang.org/x/sys/unix"

	"switchboard/broker/dialect"
	"switchboard/broker/limit"
	"switchboard/internal/wire"
)

// state is the progress of a connection of the Poller.
type state uint8

const (
	sniffing  state = iota // nothing read yet: a unit of a stream, or the first byte of "GET"
	upgrading              // reading the WebSocket handshake
	streaming              // raw TCP
	framed                 // WebSocket
	lingering              // closed by the broker; the peer may still read why
)

// maxHandshake is the most bytes of a WebSocket handshake.
const maxHandshake = 8 << 10

// pollerConn is one connection of the Poller. It lives on its loop. Each takes 64 bytes, which is a
// size class of the allocator; the next is 80.
type pollerConn struct {
	loop     *pollerLoop
	conn     gnet.Conn // nil once closed: its descriptor may be another connection's by then
	receiver Receiver  // nil before the handshake and after the end
	encoding *dialect.Encoding
	partial  *partial // nil for nothing

	state    state
	reserved bool       // turned away: its place is one of the reserve
	known    bool       // it has sent its first message, or a URL that stands for it
	address  limit.Slot // among the addresses
}

// partial is what a connection has while something is incomplete.
type partial struct {
	message *assembly   // a message in fragments, or one that is too large
	handed  *handedOver // from net/http, until all of it is read
}

// assembly returns the message that is incomplete, or nil.
func (c *pollerConn) assembly() *assembly {
	if c.partial == nil {
		return nil
	}
	return c.partial.message
}

// assemble sets the message that is incomplete; nil means that it is complete.
func (c *pollerConn) assemble(a *assembly) {
	switch {
	case a != nil && c.partial == nil:
		c.partial = &partial{message: a}
	case c.partial != nil && a == nil && c.partial.handed == nil:
		c.partial = nil
	case c.partial != nil:
		c.partial.message = a
	}
}

// read hands every whole message on; gnet's buffer keeps an incomplete one.
func (c *pollerConn) read() {
	for c.conn != nil {
		buf := c.pending()
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
		case streaming:
			n = c.readUnit(buf)
		case framed:
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

// sniff finds out by its first byte what a connection speaks. A capital letter begins a request of
// HTTP, and only GET can be a handshake. A web page can have its visitor's browser send others, with
// units of its own in the body, so none of that reaches a session.
func (c *pollerConn) sniff(first byte) {
	if first == 'G' {
		c.state = upgrading
		return
	}
	var d dialect.Dialect
	if first < 'A' || first > 'Z' {
		d = c.loop.poller.dialects.Stream(first)
	}
	if d == nil {
		c.refuse(http.StatusBadRequest, "this port takes JSON lines, and WebSocket at GET /ws; calls belong to the HTTP port")
		return
	}
	opening, err := d.Open(dialect.Hello{Framing: dialect.Stream})
	if err != nil {
		c.drop()
		return
	}
	c.open(streaming, opening)
}

// open makes the session.
func (c *pollerConn) open(s state, o dialect.Opening) {
	c.state, c.encoding, c.known = s, o.Encoding, len(o.Requests) > 0
	c.loop.clearDeadline(c)
	to := c.loop.poller.accept(c.loop.Loop, c, o.Requests)
	switch {
	case c.state == lingering: // the session closed it at once
	case c.conn == nil: // the peer went while the session wrote
		to.Closed()
	default:
		c.receiver = to
	}
}

// readUnit takes one unit of a stream from buf and returns how many bytes that was; 0 means that
// more must come.
func (c *pollerConn) readUnit(buf []byte) int {
	if a := c.assembly(); a != nil {
		n, left := c.encoding.Skip(buf, a.left)
		if a.left = left; left > 0 {
			c.receiver.Control(1, n)
			return n
		}
		c.assemble(nil)
		c.tooLarge()
		return n
	}
	p, err := c.encoding.Cut(buf, c.limit())
	switch {
	case err != nil:
		c.broken(err.Error())
		return len(buf)
	case p.Unit != nil:
		c.receive(p.Unit)
	case p.TooLarge:
		if p.Left > 0 {
			c.assemble(&assembly{skipping: true, left: p.Left})
		}
		if c.receiver.Control(1, p.N); p.Left == 0 {
			c.tooLarge()
		}
	case p.N > 0:
		c.receiver.Control(1, p.N)
	}
	return p.N
}

// broken ends a stream whose bytes are not of its dialect.
func (c *pollerConn) broken(detail string) {
	c.receiver.Broken(detail)
	out, _ := c.encoding.AppendClosing(nil, wire.CloseBadRequest, detail, 0)
	c.send(out)
	if to := c.receiver; to != nil { // else the write found the peer gone
		c.linger()
		to.Closed()
	}
}

// limit returns the most bytes of the next message.
func (c *pollerConn) limit() int { return c.loop.poller.limits.message(!c.known) }

// receive decodes a message.
func (c *pollerConn) receive(message []byte) {
	c.known = true
	c.encoding.Decode(message, c.receiver)
}

// tooLarge reports a message that was skipped.
func (c *pollerConn) tooLarge() {
	c.known = true
	if c.receiver != nil { // the session may have closed the connection at one of its pieces
		c.receiver.TooLarge()
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
		c.loop.addBacklog(c)
	}
}

// Backlogged implements Conn.
func (c *pollerConn) Backlogged() bool { return c.conn != nil && c.conn.OutboundBuffered() > 0 }

// Liveness implements Conn.
func (c *pollerConn) Liveness() dialect.Liveness { return c.encoding.Liveness() }

// Ping implements Conn.
func (c *pollerConn) Ping() {
	if c.state == framed {
		c.send(pingFrame)
		return
	}
	c.send(c.encoding.AppendPing(nil))
}

var pingFrame = []byte{0x89, 0}

// RemoteAddr implements Conn.
func (c *pollerConn) RemoteAddr() string {
	if c.conn == nil || c.conn.RemoteAddr() == nil {
		return ""
	}
	return c.conn.RemoteAddr().String()
}

// Close implements Conn. The write side is shut and the connection lingers until the peer has
// read why: closing at once, with bytes of the peer unread, would reset the connection, and the
// peer would lose the reason.
func (c *pollerConn) Close(reason wire.CloseReason, detail string, afterMS int64) {
	if c.state == lingering {
		return
	}
	c.Flush()
	out, status := c.encoding.AppendClosing(nil, reason, detail, afterMS)
	if c.state == framed {
		out = append(out, closeFrame(status, string(reason))...)
	}
	c.send(out)
	c.linger()
}

// linger ends the connection from this side. What gnet still holds goes out first, as far as
// the peer reads on; memory for that is bounded by what was written before it was Backlogged.
func (c *pollerConn) linger() {
	c.receiver = nil
	c.assemble(nil)
	c.state = lingering
	if c.conn == nil {
		return
	}
	c.loop.setDeadline(c, c.loop.poller.lingerTime)
	if c.conn.OutboundBuffered() == 0 {
		c.closeWrite()
	}
}

// shut ends the write side: everything has gone out.
func (c *pollerConn) closeWrite() { _ = unix.Shutdown(c.conn.Fd(), unix.SHUT_WR) }

// drop closes the socket.
func (c *pollerConn) drop() {
	if c.conn != nil {
		_ = c.conn.EventLoop().Close(c.conn) // ends in gone
	}
}

// gone is called when gnet has let go of the connection.
func (c *pollerConn) onClose() {
	c.conn = nil
	to := c.receiver
	c.receiver = nil
	c.loop.uncork(c)
	c.loop.clearDeadline(c)
	delete(c.loop.backlog, c)
	c.loop.backlogLen.Store(int32(len(c.loop.backlog)))
	if to != nil {
		to.Closed()
	}
}
