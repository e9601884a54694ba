package transport

import (
	"net/http"
	"net/netip"

	"github.com/panjf2000/gnet/v2"

	"switchboard/broker/dialect"
	"switchboard/broker/limit"
	"switchboard/internal/proxyproto"
	"switchboard/internal/wire"
)

// state is the progress of a connection of the Poller.
type state uint8

const (
	sniffing  state = iota // nothing read yet: the first byte decides
	proxied                // a load balancer must send a PROXY header first
	upgrading              // reading the WebSocket handshake
	streaming              // raw TCP, or a stream in a response body
	framed                 // WebSocket
	lingering              // closed by the broker; the peer may still read the reason
)

// maxHandshake is the most bytes of a WebSocket handshake.
const maxHandshake = 8 << 10

// pollerConn is one connection of the Poller. It lives on its loop. Each takes 64 bytes, which is a
// size class of the allocator; the next is 80.
type pollerConn struct {
	loop     *pollerLoop
	conn     gnet.Conn // nil once closed: another connection may have the descriptor
	receiver Receiver  // nil before the handshake and after the end
	encoding *dialect.Encoding
	input    *inputState // nil while no input is incomplete

	state     state
	refused   bool       // it counts in Poller.refused, not in the Gate
	sentFirst bool       // the client has sent a message, or a request in its URL
	corked    bool       // it is in output.corks
	address   limit.Slot // in Limits.Addresses; 0 for none
}

// inputState is the state of a connection with incomplete input.
type inputState struct {
	message *partialMessage // nil for none
	handed  *handedOver     // nil for none, or after its early bytes are read
}

// partialMessage returns the incomplete message, or nil.
func (c *pollerConn) partialMessage() *partialMessage {
	if c.input == nil {
		return nil
	}
	return c.input.message
}

// setPartialMessage sets the incomplete message; nil means that there is none.
func (c *pollerConn) setPartialMessage(part *partialMessage) {
	switch {
	case part != nil && c.input == nil:
		c.input = &inputState{message: part}
	case c.input != nil && part == nil && c.input.handed == nil:
		c.input = nil
	case c.input != nil:
		c.input.message = part
	}
}

// read passes every complete message to the session. An incomplete one stays in gnet's buffer.
func (c *pollerConn) read() {
	for c.conn != nil {
		buf := c.pending()
		if len(buf) == 0 {
			return
		}
		n := 0
		switch c.state {
		case sniffing:
			c.sniff(buf)
			continue
		case proxied:
			n = c.readProxyHeader(buf)
		case upgrading:
			n = c.upgrade(buf)
		case streaming:
			n = c.readUnit(buf)
		case framed:
			n = c.readFrame(buf)
		case lingering:
			if n = len(buf); !c.loop.mayDrop(c, n) {
				c.drop()
			}
		}
		if n == 0 || c.conn == nil {
			return
		}
		c.discard(n)
	}
}

// sniff chooses the protocol by the first byte. A capital letter starts a request of HTTP, and
// only GET can be a handshake. All other HTTP requests are refused before a byte reaches a session,
// because a web page can make its visitor's browser send a request whose body looks like units.
func (c *pollerConn) sniff(buf []byte) {
	first := buf[0]
	if first == 'G' {
		c.state = upgrading
		return
	}
	if proxyproto.Begins(buf) {
		c.loop.poller.ProxyHeaders.refuse(errForeignHeader, c.RemoteAddr())
		c.refuseUnopened(first, errForeignHeader.Error())
		return
	}
	var d dialect.Dialect
	if !isRequest(first) {
		d = c.loop.poller.dialects.Stream(first)
	}
	if d == nil {
		c.answerError(http.StatusBadRequest, "this port takes JSON lines, and WebSocket at GET /ws; calls belong to the HTTP port")
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
	c.state, c.encoding, c.sentFirst = s, o.Encoding, len(o.Requests) > 0
	c.loop.clearDeadline(c)
	to := c.loop.poller.accept(c.loop.Loop, c, o.Requests)
	switch {
	case c.state == lingering: // the session closed it at once
	case c.conn == nil: // the peer has ended it while the session wrote
		to.Closed()
	default:
		c.receiver = to
	}
}

// readUnit reads one unit of a stream and returns its length in buf, or 0 if more bytes must
// arrive.
func (c *pollerConn) readUnit(buf []byte) int {
	if part := c.partialMessage(); part != nil {
		n, left := c.encoding.Skip(buf, part.left)
		if part.left = left; left > 0 {
			c.receiver.Control(1, n)
			return n
		}
		c.setPartialMessage(nil)
		c.tooLarge(part.ref)
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
		ref := c.encoding.Ref(buf[:min(p.N, maxRefBytes)])
		if p.Left > 0 {
			c.setPartialMessage(&partialMessage{skipping: true, left: p.Left, ref: ref})
		}
		if c.receiver.Control(1, p.N); p.Left == 0 {
			c.tooLarge(ref)
		}
	case p.N > 0:
		c.receiver.Control(1, p.N)
	}
	return p.N
}

// broken ends a stream that breaks the rules of its dialect.
func (c *pollerConn) broken(detail string) {
	c.receiver.Broken(detail)
	c.Flush()
	out, _ := c.encoding.AppendClosing(nil, wire.CloseBadRequest, detail, 0)
	c.send(out)
	if to := c.receiver; to != nil { // otherwise the write has found that the peer is gone
		c.linger()
		to.Closed()
	}
}

// limit returns the most bytes of the next message.
func (c *pollerConn) limit() int { return c.loop.poller.limits.message(!c.sentFirst) }

// receive decodes a message for the session.
func (c *pollerConn) receive(message []byte) {
	c.sentFirst = true
	c.encoding.Decode(message, c.receiver)
}

// tooLarge reports a message that was skipped.
func (c *pollerConn) tooLarge(ref wire.Ref) {
	c.sentFirst = true
	if c.receiver != nil { // otherwise the session has closed the connection during the message
		c.receiver.TooLarge(ref)
	}
}

// send writes p at once, even if c is corked. If the peer is gone, gnet closes the connection
// within the call.
func (c *pollerConn) send(p []byte) {
	if c.conn == nil || c.state == lingering || len(p) == 0 {
		return
	}
	if c.conn.OutboundBuffered() == 0 {
		if p = p[rawWrite(c.conn.Fd(), p):]; len(p) == 0 {
			return
		}
	}
	_, _ = c.conn.Write(p) // gnet keeps what the socket does not take
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

// RemoteAddrPort implements Conn.
func (c *pollerConn) RemoteAddrPort() netip.AddrPort {
	if c.conn == nil {
		return netip.AddrPort{}
	}
	return addrPortOf(c.conn.RemoteAddr())
}

// Close implements Conn. It shuts the write side, and the connection lingers until the peer has
// read the reason: see package linger.
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

// linger ends the connection from this side. gnet's buffer goes out first, if the peer reads on.
// The buffer is small, because sessions do not write to a connection that is Backlogged.
func (c *pollerConn) linger() {
	c.receiver = nil
	c.setPartialMessage(nil)
	c.state = lingering
	if c.conn == nil {
		return
	}
	c.loop.setDeadline(c, c.loop.poller.lingerTime)
	if c.conn.OutboundBuffered() == 0 {
		c.closeWrite()
	}
}

// closeWrite shuts the write side. It must not be called before gnet's buffer has gone out.
func (c *pollerConn) closeWrite() { _ = shutdownWrite(c.conn.Fd()) }

// drop closes the socket at once.
func (c *pollerConn) drop() {
	if c.conn != nil {
		_ = c.conn.EventLoop().Close(c.conn) // calls onClose
	}
}

// onClose is called when gnet has closed the connection.
func (c *pollerConn) onClose() {
	c.conn = nil
	to := c.receiver
	c.receiver = nil
	c.dropCork()
	c.loop.clearDeadline(c)
	delete(c.loop.backlog, c)
	c.loop.backlogLen.Store(int32(len(c.loop.backlog)))
	if to != nil {
		to.Closed()
	}
}
