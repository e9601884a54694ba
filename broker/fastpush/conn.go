package fastpush

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"time"
)

const (
	bufferSize  = 2 << 10  // of a connection at first
	maxKept     = 64 << 10 // of the buffers that it keeps for the next request
	maxKeptHead = 512      // of the head that the next is compared with
	lingerTime  = 500 * time.Millisecond

	lastCallTime = 50 * time.Millisecond
)

// conn is a connection taken over; it belongs to the goroutine of serve.
type conn struct {
	Conn
	server *Server

	in      []byte // what was read
	at      int    // how much of it is answered
	skipped int    // bytes of empty lines since the last answer

	now      time.Time // when something came last
	began    time.Time // when the first byte came of what is not answered
	deadline time.Time // of reading
	armed    time.Time // when the deadline of writing was set

	body, out     []byte // of the last answer, for the next
	authorization string // of the last request
	host          string // of the request with which the connection was taken over

	last  []byte // the head of the last request
	means head   // what it said, but for the authorization
}

// serve answers requests until the connection ends or goes back.
func (c *conn) serve() {
	next := end
	defer func() {
		if v := recover(); v != nil && v != http.ErrAbortHandler { // as net/http: this connection ends, and no other
			c.server.opts.Logger.Error().Interface("panic", v).Bytes("stack", debug.Stack()).Msg("a call failed")
		}
		c.server.leave(c, next == back)
	}()
	for next = goOn; next == goOn; {
		next = end // should there be a panic
		next = c.turn()
	}
}

// step is what becomes of a connection.
type step int

const (
	goOn step = iota
	end
	back // to net/http
)

// turn answers a request, or reads a piece of one.
func (c *conn) turn() step {
	c.skipEmptyLines()
	h, v := c.head()
	switch unread := len(c.in) - c.at; {
	case v == other, h.length > c.server.opts.MaxBody:
		return back
	case v == plain && unread >= h.size+h.length:
		return c.answer(h)
	default:
		err := c.more(h, v)
		switch {
		case err == nil:
			return goOn
		case unread > 0 && c.server.draining.Load() && errors.Is(err, os.ErrDeadlineExceeded):
			return back // the server ends: net/http knows how to wait for the rest
		}
		return end
	}
}

// head reads the head of a request. Most are the same as the one before, byte for byte: to see that saves 0.1 us or more of
// the 0.3 that a request takes here.
func (c *conn) head() (head, verdict) {
	text := c.in[c.at:]
	if len(c.last) > 0 && bytes.HasPrefix(text, c.last) {
		return c.means, plain
	}
	h, v := readHead(text, c.server.opts.Paths)
	if v == plain && string(h.host) != c.host { // net/http knows which are allowed
		return head{}, other
	}
	if v == plain {
		if string(h.authorization) != c.authorization {
			c.authorization = string(h.authorization)
		}
		if c.last = c.last[:0]; h.size <= maxKeptHead {
			c.last, c.means = append(c.last, text[:h.size]...), h
			c.means.host, c.means.authorization = nil, nil // they are in text
		}
	}
	return h, v
}

// skipEmptyLines does, behind the body of a request, as net/http: RFC 9112 §2.2 asks for it.
func (c *conn) skipEmptyLines() {
	for ; c.skipped < 4 && c.at < len(c.in) && (c.in[c.at] == '\r' || c.in[c.at] == '\n'); c.skipped++ {
		c.at++
	}
}

// more reads more, and no longer than it may take.
func (c *conn) more(h head, v verdict) error {
	o := &c.server.opts
	unread := len(c.in) - c.at
	if c.at > 0 {
		c.in, c.at = append(c.in[:0], c.in[c.at:]...), 0
	}
	switch {
	case unread == 0:
		if cap(c.in) > maxKept {
			c.in = make([]byte, 0, bufferSize)
		}
		// Setting it takes 0.5 us: so an eighth is left to chance.
		if until := c.now.Add(o.Idle); c.deadline.After(until) || until.Sub(c.deadline) > o.Idle/8 {
			c.until(until)
		}
	case v == partial:
		c.until(c.began.Add(o.ReadHead))
	default:
		c.until(c.began.Add(o.Read))
	}
	if len(c.in) == cap(c.in) { // it grows with what comes, whatever length was announced
		c.in = append(make([]byte, 0, max(bufferSize, min(2*cap(c.in), max(h.size+h.length, maxHead)))), c.in...)
	}
	n, err := c.Read(c.in[len(c.in):cap(c.in)])
	c.in = c.in[:len(c.in)+n]
	c.now = time.Now()
	if unread == 0 {
		c.began = c.now
	}
	if n > 0 {
		return nil
	}
	return err
}

// until sets the deadline, unless Shutdown has set its own, or will.
func (c *conn) until(t time.Time) {
	if c.deadline.Equal(t) {
		return
	}
	c.deadline = t
	_ = c.SetReadDeadline(t)
	if c.server.draining.Load() {
		c.lastCall()
	}
}

// untilWritten sets the deadline of the next answer. It counts from when the answer is there, since
// the store may have taken long; as with reading, an eighth is left to chance.
func (c *conn) untilWritten() {
	limit := c.server.opts.Write
	if time.Since(c.armed) > limit/8 {
		c.armed = time.Now()
		_ = c.SetWriteDeadline(c.armed.Add(limit))
	}
}

// lastCall ends reading soon: a request that is on its way is still answered.
func (c *conn) lastCall() { _ = c.SetReadDeadline(time.Now().Add(lastCallTime)) }

// answer answers the request that in goes on with.
func (c *conn) answer(h head) step {
	text := c.in[c.at+h.size:][:h.length]
	status, later, body := c.server.opts.Answer(h.path, c.authorization, text, c.body[:0])
	c.at, c.skipped = c.at+h.size+h.length, 0
	c.began = c.now
	last := c.at == len(c.in) && c.server.draining.Load()
	c.out = append(appendHead(c.out[:0], status, later, len(body), c.server.date(c.now), last), body...)
	c.untilWritten()
	_, err := c.Write(c.out)
	if c.body = body; cap(body) > maxKept {
		c.body, c.out = nil, nil
	}
	switch {
	case err != nil:
		return end
	case last:
		c.linger()
		return end
	}
	return goOn
}

// linger lets the peer read the last answer: to close a socket in which something is unread would take it from it.
func (c *conn) linger() {
	_ = c.SetReadDeadline(time.Now().Add(lingerTime))
	for {
		if _, err := c.Read(c.in[:cap(c.in)]); err != nil {
			return
		}
	}
}

// Conn is what a listener must give to a Server's http.Server.
type Conn interface {
	net.Conn
	// Unread gives p, which it keeps, to the next calls of Read.
	Unread(p []byte)
}
