package transport

import (
	"switchboard/broker/dialect"
	"switchboard/internal/wire"
)

// output is the write side of a loop's connections.
type output struct {
	corks   map[*pollerConn]*cork // of the connections that are corked
	spare   []*cork               // for reuse
	scratch []byte                // scratch space for one event or message
}

// cork holds back what is written to a connection.
type cork struct {
	calls int // of Cork less those of Uncork
	held  []byte
}

// A loop keeps maxSpareCorks corks for reuse, each with at most maxSpareHeld bytes.
const (
	maxSpareCorks = 64
	maxSpareHeld  = 4 << 10
)

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
	if c.corked {
		k := o.corks[c]
		if k.held = appendTo(k.held); len(k.held) > maxCorked {
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
	if !c.corked {
		c.send(p)
		return
	}
	k := c.loop.output.corks[c]
	if len(k.held)+len(p) > maxCorked {
		c.Flush()
		c.send(p)
		return
	}
	k.held = append(k.held, p...)
}

// Cork implements Conn.
func (c *pollerConn) Cork() {
	if c.conn == nil {
		return
	}
	o := &c.loop.output
	if !c.corked {
		if o.corks == nil {
			o.corks = make(map[*pollerConn]*cork)
		}
		c.corked, o.corks[c] = true, o.newCork()
	}
	o.corks[c].calls++
}

// newCork returns an empty cork.
func (o *output) newCork() *cork {
	if n := len(o.spare); n > 0 {
		k := o.spare[n-1]
		o.spare = o.spare[:n-1]
		return k
	}
	return new(cork)
}

// Flush implements Conn.
func (c *pollerConn) Flush() {
	if !c.corked {
		return
	}
	k := c.loop.output.corks[c]
	if len(k.held) == 0 {
		return
	}
	b := k.held
	k.held = nil // the write may end the session, which writes again
	c.send(b)
	if k.held == nil {
		k.held = spare(b)
	}
}

// Uncork implements Conn.
func (c *pollerConn) Uncork() {
	if !c.corked {
		return
	}
	k := c.loop.output.corks[c]
	if k.calls--; k.calls == 0 {
		c.Flush()
		c.dropCork()
	}
}

// dropCork drops the cork of c with the bytes that it holds, if there is one.
func (c *pollerConn) dropCork() {
	if !c.corked {
		return
	}
	o := &c.loop.output
	k := o.corks[c]
	c.corked = false
	delete(o.corks, c)
	if len(o.spare) < maxSpareCorks {
		if k.calls, k.held = 0, k.held[:0]; cap(k.held) > maxSpareHeld {
			k.held = nil
		}
		o.spare = append(o.spare, k)
	}
}

// spare returns b empty for reuse, or nil if it is large.
func spare(b []byte) []byte {
	if cap(b) > 2*maxCorked {
		return nil
	}
	return b[:0]
}
