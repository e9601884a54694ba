package sim

import (
	"net/netip"

	"switchboard/broker/dialect"
	"switchboard/internal/dialecttest"
	"switchboard/internal/wire"
)

// Write implements transport.Conn.
func (c *conn) Write(b *dialect.Batch) {
	events := make([]wire.Event, 0, len(b.Messages))
	for _, m := range b.Messages {
		if !m.IsEmpty() {
			events = append(events, dialecttest.EventOf(m))
		}
	}
	c.write(events...)
}

// Send implements transport.Conn.
func (c *conn) Send(e wire.Event) { c.write(e) }

// write is one write to the socket, or part of one while the connection is corked.
func (c *conn) write(events ...wire.Event) {
	if c.corks > 0 {
		c.held = append(c.held, events...)
		return
	}
	for _, e := range events {
		switch {
		case c.session == nil && c.state == ended: // the broker has closed it itself
		case c.socket == flowing:
			c.receive(e)
		case c.socket == backlogged && e.Type == wire.TypeMessage:
			c.client.w.violate("%v is backed up, but the broker wrote %s", c, toJSON(e))
		default:
			c.unread = append(c.unread, e)
		}
	}
	if len(events) > 0 && c.socket == filling {
		c.socket = backlogged
	}
}

// Cork implements transport.Conn.
func (c *conn) Cork() { c.corks++ }

// Flush implements transport.Conn.
func (c *conn) Flush() {
	corks, held := c.corks, c.held
	c.corks, c.held = 0, nil
	c.write(held...)
	c.corks = corks
}

// Uncork implements transport.Conn.
func (c *conn) Uncork() {
	if c.corks--; c.corks == 0 {
		c.Flush()
	}
}

// Backlogged implements transport.Conn.
func (c *conn) Backlogged() bool { return c.socket == backlogged }

// Liveness implements transport.Conn.
func (c *conn) Liveness() dialect.Liveness { return dialect.Liveness{} }

// Ping implements transport.Conn.
func (c *conn) Ping() {}

// RemoteAddr implements transport.Conn.
func (c *conn) RemoteAddr() string { return "" }

// RemoteAddrPort implements transport.Conn.
func (c *conn) RemoteAddrPort() netip.AddrPort { return netip.AddrPort{} }

// Close implements transport.Conn.
func (c *conn) Close(reason wire.CloseReason, detail string, _ int64) {
	if c.node.dead { // the process has ended; only its goroutines here still run
		return
	}
	c.Flush()
	c.client.w.log("%v is closed: %s %s", c, reason, detail)
	if bound := c.client.w.model.bound[c.client.name]; reason == wire.CloseSuperseded && len(bound) == 1 && bound[0] == c {
		c.client.w.violate("%v is closed as superseded, and no other connection was bound since", c)
	}
	c.reason, c.state, c.unread, c.session = reason, ended, nil, nil
}
