package transport

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"

	"switchboard/broker/loop"
	"switchboard/internal/wire"
)

const (
	// pingTimeout bounds the writing of a ping frame and the wait for its pong.
	pingTimeout = 3 * time.Second
	// maxSkip times the limit of a message is how much of one that is larger is read to skip it. One that is compressed
	// costs its sender a thousandth of what it is here: 512 KB on the way take half a second of CPU to inflate.
	maxSkip = 16
	// maxQueued is how many bytes wait for the writer before the connection counts as backed up.
	maxQueued = 32 << 10
)

// webConn is one connection of Web.
type webConn struct {
	loop       *loop.Loop
	ws         *websocket.Conn
	frames     *frameCounter
	ctx        context.Context // ends with the connection
	cancel     context.CancelFunc
	lingerTime time.Duration
	addr       string   // the peer's
	to         Receiver // belongs to the loop; nil after the end

	mu      sync.Mutex // guards the fields below
	queue   []wire.Frame
	queued  int   // bytes in queue, and in the write under way
	writing bool  // a writer is at work
	lagged  bool  // Backlogged was true, so Writable is owed
	last    *last // set once: what the writer ends with
}

type last struct {
	frame  wire.Frame
	reason wire.CloseReason
}

// open makes to the session, unless it has closed the connection at once.
func (c *webConn) open(to Receiver) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		c.to = to
	}
}

// onLoop hands f to the session, if it is still there.
func (c *webConn) onLoop(f func(Receiver)) {
	c.loop.Post(func() {
		if c.to != nil {
			f(c.to)
		}
	})
}

// control tells the session of the frames that were read and are not counted yet. It waits for the
// session, which sets the pace, or for the end of the connection. It must not be called on the loop.
func (c *webConn) control() bool {
	turn := make(chan bool, 1)
	c.loop.Post(func() {
		n := c.frames.take()
		turn <- c.to != nil && (n == 0 || c.to.Control(n, 0))
	})
	select {
	case ok := <-turn:
		return ok
	case <-c.ctx.Done(): // the loop may have ended, too
		return false
	}
}

func (c *webConn) readLoop(limits Limits, hello Hello) {
	defer c.cancel()
	defer c.onLoop(func(to Receiver) {
		c.to = nil
		to.Closed()
	})
	defer func() { _ = c.ws.CloseNow() }()
	turn := make(chan struct{}, 1)
	for first := !hello.connects(); ; first = false {
		limit := limits.message(first)
		typ, r, err := c.ws.Reader(c.ctx)
		if err != nil {
			return
		}
		if typ != websocket.MessageText {
			c.fail(statusUnsupported, "messages are text frames")
			return
		}
		c.frames.message()
		message, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
		if err == nil && len(message) > limit {
			err = c.skip(r, int64(limits.Message)*maxSkip)
			message = nil
		}
		switch {
		case errors.Is(err, errEndless):
			c.fail(statusTooBig, "the message is far too large")
			return
		case err != nil:
			return
		case message == nil:
			c.onLoop(Receiver.TooLarge)
		case !utf8.Valid(message):
			c.fail(statusNotUTF8, "a text frame is not UTF-8")
			return
		default:
			c.loop.Post(func() {
				if n := c.frames.take(); n > 0 && c.to != nil {
					c.to.Control(n, 0)
				}
				if c.to != nil {
					c.to.Receive(message)
				}
				turn <- struct{}{}
			})
			<-turn // the session sets the pace
		}
	}
}

// errEndless says that there is more of a message than is worth to be skipped.
var errEndless = errors.New("too much to skip")

// skip reads the rest of a message, but no more than most bytes.
func (c *webConn) skip(r io.Reader, most int64) error {
	n, err := io.Copy(io.Discard, io.LimitReader(r, most))
	c.onLoop(func(to Receiver) { to.Control(c.frames.take(), int(n)) })
	if err == nil && n == most {
		err = errEndless
	}
	return err
}

// fail ends a connection that breaks the framing, with the RFC's own code.
func (c *webConn) fail(status websocket.StatusCode, detail string) {
	c.onLoop(func(to Receiver) { to.Broken(detail) })
	time.AfterFunc(c.lingerTime, c.cancel)
	_ = c.ws.Close(status, detail)
}

// Write is Conn's. It only queues; a writer goroutine is there while there is something to write.
func (c *webConn) Write(b *wire.Batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last != nil {
		return
	}
	c.queue = append(c.queue, b.Frames...)
	for _, f := range b.Frames {
		c.queued += f.Size()
	}
	c.startLocked()
}

func (c *webConn) startLocked() {
	if !c.writing {
		c.writing = true
		go c.writeLoop()
	}
}

// Backlogged is Conn's.
func (c *webConn) Backlogged() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queued > maxQueued {
		c.lagged = true
	}
	return c.queued > maxQueued
}

// full says what Backlogged says, to whom no Writable is owed: pongs must not wait, and
// the reader with them, behind a peer that does not read.
func (c *webConn) full() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queued > maxQueued
}

// Ping is Conn's. The pong is told by OnPongReceived, so nobody waits for it here.
func (c *webConn) Ping() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last != nil {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(c.ctx, pingTimeout)
		defer cancel()
		_ = c.ws.Ping(ctx)
	}()
}

// RemoteAddr is Conn's.
func (c *webConn) RemoteAddr() string { return c.addr }

// Close is Conn's. What is queued goes out before, as far as the peer reads on.
func (c *webConn) Close(reason wire.CloseReason, detail string, afterMS int64) {
	c.to = nil
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		c.last = &last{closing(reason, detail, afterMS), reason}
		time.AfterFunc(c.lingerTime, c.cancel) // it may read nothing at all, now or ever
		c.startLocked()
	}
}

// writeLoop writes until nothing is queued.
func (c *webConn) writeLoop() {
	var batch []wire.Frame
	for {
		c.mu.Lock()
		for _, f := range batch {
			c.queued -= f.Size()
		}
		batch, c.queue = c.queue, nil
		end := c.last
		if len(batch) == 0 {
			if end == nil {
				c.writing = false
			}
			owed := c.lagged
			c.lagged = false
			c.mu.Unlock()
			if end != nil {
				c.end(end)
			} else if owed {
				c.onLoop(Receiver.Writable)
			}
			return
		}
		c.mu.Unlock()
		if err := c.writeAll(batch); err != nil {
			_ = c.ws.CloseNow() // the reader ends, and tells the session
			return
		}
	}
}

// writeAll waits as long as the peer takes nothing: the session knows how long that may be.
func (c *webConn) writeAll(batch []wire.Frame) error {
	for _, f := range batch {
		if err := c.ws.Write(c.ctx, websocket.MessageText, f.JSON()); err != nil {
			return err
		}
	}
	return nil
}

// end says why and closes. The status is the same word as in the message before it.
func (c *webConn) end(l *last) {
	if c.ws.Write(c.ctx, websocket.MessageText, l.frame.JSON()) != nil {
		_ = c.ws.CloseNow()
		return
	}
	_ = c.ws.Close(websocket.StatusCode(l.reason.Status()), string(l.reason)) // waits for the peer's
}
