package fastpush

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"switchboard/internal/linger"
)

const (
	bufferSize  = 2 << 10  // the read buffer of a new connection, in bytes
	maxKept     = 64 << 10 // the largest buffer kept for the next request, in bytes
	maxKeptHead = 512      // the longest head kept to compare the next one with, in bytes

	// drainReadTime is how long a connection still reads when the server drains.
	drainReadTime = 50 * time.Millisecond
	// lingerTime is how long a connection stays open after its last answer.
	lingerTime = 500 * time.Millisecond
)

// conn is a connection that was taken over from net/http. Only the goroutine of serve uses it,
// except for expireReadSoon.
type conn struct {
	Conn
	server *Server

	readBuf []byte // bytes read
	pos     int    // bytes of readBuf that are answered
	skipped int    // bytes of empty lines since the last answer

	lastRead     time.Time // the last time that a read returned
	requestStart time.Time // when the first unanswered byte was read
	readDeadline time.Time // as last set by setReadDeadline
	writeSet     time.Time // when the write deadline was last set

	bodyBuf, writeBuf []byte // buffers of the last answer, reused for the next
	authorization     string // of the last request
	host              string // of the request that net/http answered last

	lastHead   []byte // the head of the last request
	lastParsed head   // lastHead parsed, without host and authorization
}

// serve answers requests until the connection closes or goes back to net/http.
func (c *conn) serve() {
	result := closed
	defer func() {
		if v := recover(); v != nil && v != http.ErrAbortHandler { // as in net/http, a panic closes this connection only
			c.server.opts.Logger.Error().Interface("panic", v).Bytes("stack", debug.Stack()).Msg("panic in a push")
		}
		c.server.release(c, result == handBack)
	}()
	for result = proceed; result == proceed; {
		result = closed // stays so if serveOnce panics
		result = c.serveOnce()
	}
}

// outcome says what to do with a connection.
type outcome int

const (
	proceed outcome = iota
	closed
	handBack // to net/http
)

// serveOnce answers a request if a whole one is read. Otherwise it reads once.
func (c *conn) serveOnce() outcome {
	c.skipEmptyLines()
	h, f := c.nextHead()
	switch unanswered := len(c.readBuf) - c.pos; {
	case f == notSimple, h.bodySize > c.server.opts.MaxBody:
		return handBack
	case f == simple && unanswered >= h.headSize+h.bodySize:
		return c.answer(h)
	default:
		err := c.readMore(h, f)
		switch {
		case err == nil:
			return proceed
		case unanswered > 0 && c.server.draining.Load() && errors.Is(err, os.ErrDeadlineExceeded):
			return handBack // net/http waits for the rest of the request and closes the connection
		}
		return closed
	}
}

// nextHead parses the head of the next request. Most heads equal the one before, byte for byte.
// Comparing them first saves 0.1 us or more of the 0.3 us that a request takes in this package.
func (c *conn) nextHead() (head, form) {
	text := c.readBuf[c.pos:]
	if len(c.lastHead) > 0 && bytes.HasPrefix(text, c.lastHead) {
		return c.lastParsed, simple
	}
	h, f := parseHead(text, c.server.opts.Paths)
	if f == simple && string(h.host) != c.host { // the handler in net/http decides whether the host is allowed
		return head{}, notSimple
	}
	if f == simple {
		if string(h.authorization) != c.authorization {
			c.authorization = string(h.authorization)
		}
		if c.lastHead = c.lastHead[:0]; h.headSize <= maxKeptHead {
			c.lastHead, c.lastParsed = append(c.lastHead, text[:h.headSize]...), h
			c.lastParsed.host, c.lastParsed.authorization = nil, nil // they share memory with text
		}
	}
	return h, f
}

// skipEmptyLines skips empty lines between requests (RFC 9112 §2.2), as many as net/http does.
func (c *conn) skipEmptyLines() {
	for ; c.skipped < 4 && c.pos < len(c.readBuf) && (c.readBuf[c.pos] == '\r' || c.readBuf[c.pos] == '\n'); c.skipped++ {
		c.pos++
	}
}

// readMore reads once. The deadline depends on what is missing: the whole next request, the rest of
// its head, or the rest of its body.
func (c *conn) readMore(h head, f form) error {
	o := &c.server.opts
	unanswered := len(c.readBuf) - c.pos
	if c.pos > 0 {
		c.readBuf, c.pos = append(c.readBuf[:0], c.readBuf[c.pos:]...), 0
	}
	switch {
	case unanswered == 0:
		if cap(c.readBuf) > maxKept {
			c.readBuf = make([]byte, 0, bufferSize)
		}
		// Setting a deadline takes 0.5 us. The old one stays if it is at most Idle/8 too early.
		if until := c.lastRead.Add(o.Idle); c.readDeadline.After(until) || until.Sub(c.readDeadline) > o.Idle/8 {
			c.setReadDeadline(until)
		}
	case f == partial:
		c.setReadDeadline(c.requestStart.Add(o.ReadHead))
	default:
		c.setReadDeadline(c.requestStart.Add(o.Read))
	}
	if len(c.readBuf) == cap(c.readBuf) { // double it, rather than trust Content-Length
		c.readBuf = append(make([]byte, 0, max(bufferSize, min(2*cap(c.readBuf), max(h.headSize+h.bodySize, maxHead)))), c.readBuf...)
	}
	n, err := c.Read(c.readBuf[len(c.readBuf):cap(c.readBuf)])
	c.readBuf = c.readBuf[:len(c.readBuf)+n]
	c.lastRead = time.Now()
	if unanswered == 0 {
		c.requestStart = c.lastRead
	}
	if n > 0 {
		return nil
	}
	return err
}

// setReadDeadline sets the read deadline. While the server drains, expireReadSoon takes precedence.
func (c *conn) setReadDeadline(t time.Time) {
	if c.readDeadline.Equal(t) {
		return
	}
	c.readDeadline = t
	_ = c.SetReadDeadline(t)
	if c.server.draining.Load() {
		c.expireReadSoon()
	}
}

// setWriteDeadline sets the deadline for writing an answer. It counts from when the answer is
// ready, since the store may have taken long. Like the read deadline, the old one stays if it is at
// most an eighth of the timeout too early.
func (c *conn) setWriteDeadline() {
	limit := c.server.opts.Write
	if time.Since(c.writeSet) > limit/8 {
		c.writeSet = time.Now()
		_ = c.SetWriteDeadline(c.writeSet.Add(limit))
	}
}

// expireReadSoon ends reading in drainReadTime. A request that arrives until then is still
// answered.
func (c *conn) expireReadSoon() { _ = c.SetReadDeadline(time.Now().Add(drainReadTime)) }

// answer answers the request at pos.
func (c *conn) answer(h head) outcome {
	text := c.readBuf[c.pos+h.headSize:][:h.bodySize]
	status, retryAfter, body := c.server.opts.Answer(h.path, c.authorization, text, c.bodyBuf[:0])
	c.pos, c.skipped = c.pos+h.headSize+h.bodySize, 0
	c.requestStart = c.lastRead // of the next request, if readBuf holds a part of it
	last := c.pos == len(c.readBuf) && c.server.draining.Load()
	c.writeBuf = append(appendHead(c.writeBuf[:0], status, retryAfter, len(body), c.server.date(c.lastRead), last), body...)
	c.setWriteDeadline()
	_, err := c.Write(c.writeBuf)
	if c.bodyBuf = body; cap(body) > maxKept {
		c.bodyBuf, c.writeBuf = nil, nil
	}
	switch {
	case err != nil:
		return closed
	case last:
		c.linger()
		return closed
	}
	return proceed
}

// linger waits until the peer has read the last answer and closes, for lingerTime at most: see
// package linger.
func (c *conn) linger() {
	_ = c.SetReadDeadline(time.Now().Add(lingerTime))
	linger.Drop(c)
}

// Conn is a connection that can be handed back. The listener of the http.Server must return Conns.
type Conn interface {
	net.Conn
	// Unread makes the next calls of Read return p. It keeps p.
	Unread(p []byte)
}
