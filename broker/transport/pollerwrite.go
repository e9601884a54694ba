package transport

import (
	"switchboard/broker/dialect"
	"switchboard/internal/wire"
)

// output is the write side of a loop's connections. Only one of them is corked at a time: a task of
// the loop corks the connection that it serves.
type output struct {
	corked  *pollerConn // nil for none
	corks   int         // calls of Cork less those of Uncork
	held    []byte      // bytes that corked has written
	scratch []byte      // scratch space for one event or message
}

// Send implements Conn.
func (c *pollerConn) Send(e wire.Event) {
	c.encode(func(dst []byte) []byte { return c.encoding.AppendEvent(dst, e) })
}

// Write implements Conn.
func (c *pollerConn) Write(b *dialect.Batch) {
	if f := c.encoding.Form; f != nil {
		c.put(b.Bytes(f))
		return
	}
	c.encode(func(dst []byte) []byte {
		for _, m := range b.Messages {
			dst = c.encoding.AppendMessage(dst, m)
		}
		return dst
	})
}

// encode writes the bytes that appendTo appends, or holds them back if c is corked. It does not
// allocate.
func (c *pollerConn) encode(appendTo func(dst []byte) []byte) {
	o := &c.loop.output
	if o.corked == c {
		if o.held = appendTo(o.held); len(o.held) > maxCorked {
			c.Flush()
		}
		return
	}
	b := appendTo(o.scratch[:0])
	o.scratch = nil // the write may end this session, and that may write to others
	c.send(b)
	o.scratch = spare(b)
}

// put writes encoded bytes, or holds them back if c is corked.
func (c *pollerConn) put(p []byte) {
	o := &c.loop.output
	if o.corked != c {
		c.send(p)
		return
	}
	if len(o.held)+len(p) > maxCorked {
		c.Flush()
		c.send(p)
		return
	}
	o.held = append(o.held, p...)
}

// Cork implements Conn.
func (c *pollerConn) Cork() {
	if o := &c.loop.output; o.corked == nil || o.corked == c {
		o.corked = c
		o.corks++
	}
}

// Flush implements Conn.
func (c *pollerConn) Flush() {
	o := &c.loop.output
	if o.corked != c || len(o.held) == 0 {
		return
	}
	b := o.held
	o.held = nil // the write may end the session, which writes again
	c.send(b)
	if o.held == nil {
		o.held = spare(b)
	}
}

// Uncork implements Conn.
func (c *pollerConn) Uncork() {
	o := &c.loop.output
	if o.corked != c {
		return
	}
	if o.corks--; o.corks == 0 {
		c.Flush()
		o.corked = nil
	}
}

// uncork drops the held bytes of a connection that has ended.
func (l *pollerLoop) uncork(c *pollerConn) {
	if o := &l.output; o.corked == c {
		o.corked, o.corks, o.held = nil, 0, o.held[:0]
	}
}

// spare returns b empty for reuse, or nil if it is large.
func spare(b []byte) []byte {
	if cap(b) > 2*maxCorked {
		return nil
	}
	return b[:0]
}
