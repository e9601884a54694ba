package transport

import (
	"net/netip"
	"sync"
	"time"

	"switchboard/broker/dialect"
	"switchboard/broker/loop"
)

// maxQueued is how many bytes may wait for the writer before the connection counts as backlogged.
const maxQueued = 32 << 10

// queueConn is the common part of the connections of net/http: a queue for a goroutine that
// writes.
type queueConn struct {
	loop       *loop.Loop
	encoding   *dialect.Encoding
	lingerTime time.Duration
	addr       string   // the peer's
	receiver   Receiver // belongs to the loop; nil after the end

	mu     sync.Mutex // guards the fields below, and fields of the connection that embeds this
	queue  [][]byte
	queued int // bytes in queue, and in the write under way
	// writableDue means that Backlogged has returned true, so Writable must follow.
	writableDue bool
}

func (w *Web) queueConn(l *loop.Loop, opening dialect.Opening, addr string) queueConn {
	return queueConn{loop: l, encoding: opening.Encoding, lingerTime: w.lingerTime, addr: addr}
}

// onLoop calls f with the session on the loop, unless the session has ended.
func (c *queueConn) onLoop(f func(Receiver)) {
	c.loop.Post(func() {
		if c.receiver != nil {
			f(c.receiver)
		}
	})
}

// encode returns a batch as this connection receives it.
func (c *queueConn) encode(b *dialect.Batch) []byte {
	if f := c.encoding.Form; f != nil {
		return b.Bytes(f)
	}
	var out []byte
	for _, m := range b.Messages {
		out = c.encoding.AppendMessage(out, m)
	}
	return out
}

// enqueueLocked adds bytes for the writer.
func (c *queueConn) enqueueLocked(b []byte) {
	c.queue = append(c.queue, b)
	c.queued += len(b)
}

// Cork implements Conn. It does nothing, because the queue gathers writes anyway.
func (c *queueConn) Cork() {}

// Flush implements Conn.
func (c *queueConn) Flush() {}

// Uncork implements Conn.
func (c *queueConn) Uncork() {}

// Backlogged implements Conn.
func (c *queueConn) Backlogged() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queued > maxQueued {
		c.writableDue = true
	}
	return c.queued > maxQueued
}

// Liveness implements Conn.
func (c *queueConn) Liveness() dialect.Liveness { return c.encoding.Liveness() }

// RemoteAddr implements Conn.
func (c *queueConn) RemoteAddr() string { return c.addr }

// RemoteAddrPort implements Conn.
func (c *queueConn) RemoteAddrPort() netip.AddrPort {
	addr, _ := netip.ParseAddrPort(c.addr)
	return netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
}
