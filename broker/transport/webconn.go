package transport

import (
	"context"
	"errors"
	"io"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"

	"switchboard/broker/dialect"
	"switchboard/internal/wire"
)

const (
	// pingTimeout bounds the writing of a ping frame and the wait for its pong.
	pingTimeout = 3 * time.Second
	// maxSkip bounds how much of a message above the limit is read to skip it: maxSkip times the
	// limit. A compressed message can be a thousand times smaller on the wire: 512 KB take half a
	// second of CPU to inflate.
	maxSkip = 16
)

// webConn is one connection of Web.
type webConn struct {
	queueConn // its queue has frames; each element has one or more

	ws     *websocket.Conn
	frames *frameCounter
	ctx    context.Context // ends with the connection
	cancel context.CancelFunc

	// queueConn.mu guards the fields below.
	writing bool     // a writer is at work
	closing *closing // set once: what the writer sends last
}

// closing is how a connection ends.
type closing struct {
	frames []byte
	status int
	reason wire.CloseReason
}

// open sets the session, unless the session has closed the connection already.
func (c *webConn) open(receiver Receiver) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing == nil {
		c.receiver = receiver
	}
}

// control reports to the session how many frames were read since the last report. It waits for the
// result or for the end of the connection, so the client cannot outrun the session. It must not be
// called on the loop.
func (c *webConn) control() bool {
	handled := make(chan bool, 1)
	c.loop.Post(func() {
		n := c.frames.take()
		handled <- c.receiver != nil && (n == 0 || c.receiver.Control(n, 0))
	})
	select {
	case ok := <-handled:
		return ok
	case <-c.ctx.Done(): // the loop may have ended, too
		return false
	}
}

// readLoop reads messages until the connection ends. sentFirst means that the URL contained the
// first request.
func (c *webConn) readLoop(limits Limits, sentFirst bool) {
	defer c.cancel()
	defer c.onLoop(func(to Receiver) {
		c.receiver = nil
		to.Closed()
	})
	defer func() {
		if c.frames.lingers.Load() {
			<-c.ctx.Done() // the writer still sends the reason
		}
		_ = c.ws.CloseNow()
	}()
	handled := make(chan struct{}, 1)
	for ; ; sentFirst = true {
		limit := limits.message(!sentFirst)
		typ, r, err := c.ws.Reader(c.ctx)
		if err != nil {
			return
		}
		if typ != messageType(c.encoding.Framing) {
			c.fail(statusUnsupported, "messages are "+framingNames[c.encoding.Framing]+" frames")
			return
		}
		c.frames.endMessage()
		message, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
		var ref wire.Ref
		if err == nil && len(message) > limit {
			ref = c.encoding.Ref(message[:min(len(message), maxRefBytes)])
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
			c.onLoop(func(to Receiver) { to.TooLarge(ref) })
		case typ == websocket.MessageText && !utf8.Valid(message):
			c.fail(statusNotUTF8, "a text frame is not UTF-8")
			return
		default:
			c.loop.Post(func() {
				if n := c.frames.take(); n > 0 && c.receiver != nil {
					c.receiver.Control(n, 0)
				}
				if c.receiver != nil {
					c.encoding.Decode(message, c.receiver)
				}
				handled <- struct{}{}
			})
			<-handled // the client cannot outrun the session
		}
	}
}

// errEndless means that a message is so large that it is not worth skipping.
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

// fail ends a connection that breaks the framing, with a status code of RFC 6455.
func (c *webConn) fail(status websocket.StatusCode, detail string) {
	c.onLoop(func(to Receiver) { to.Broken(detail) })
	c.frames.linger()
	time.AfterFunc(c.lingerTime, c.cancel)
	_ = c.ws.Close(status, detail)
	c.cancel()
}

// Send implements Conn.
func (c *webConn) Send(e wire.Event) { c.enqueue(c.encoding.AppendEvent(nil, e)) }

// Write implements Conn.
func (c *webConn) Write(b *dialect.Batch) { c.enqueue(c.encode(b)) }

// enqueue gives frames to the writer, a goroutine that exists while there is something to write.
func (c *webConn) enqueue(frames []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing != nil || len(frames) == 0 {
		return
	}
	c.enqueueLocked(frames)
	c.startLocked()
}

func (c *webConn) startLocked() {
	if !c.writing {
		c.writing = true
		go c.writeLoop()
	}
}

// full is Backlogged without a later Writable. OnPingReceived uses it: a pong to a peer that does
// not read would block the reader.
func (c *webConn) full() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queued > maxQueued
}

// Ping implements Conn. It does not wait for the pong, which comes to OnPongReceived.
func (c *webConn) Ping() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing != nil {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(c.ctx, pingTimeout)
		defer cancel()
		_ = c.ws.Ping(ctx)
	}()
}

// Close implements Conn. The queue goes out first, if the peer reads it within lingerTime.
// Meanwhile the bounds of package linger apply.
func (c *webConn) Close(reason wire.CloseReason, detail string, afterMS int64) {
	c.receiver = nil
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing == nil {
		frames, status := c.encoding.AppendClosing(nil, reason, detail, afterMS)
		c.closing = &closing{frames, status, reason}
		c.frames.linger()
		time.AfterFunc(c.lingerTime, c.cancel) // the peer may never read anything
		c.startLocked()
	}
}

// writeLoop writes until nothing is queued.
func (c *webConn) writeLoop() {
	var batch [][]byte
	for {
		c.mu.Lock()
		for _, frames := range batch {
			c.queued -= len(frames)
		}
		batch, c.queue = c.queue, nil
		end := c.closing
		if len(batch) == 0 {
			if end == nil {
				c.writing = false
			}
			due := c.writableDue
			c.writableDue = false
			c.mu.Unlock()
			if end != nil {
				c.end(end)
			} else if due {
				c.onLoop(Receiver.Writable)
			}
			return
		}
		c.mu.Unlock()
		if err := c.writeAll(batch); err != nil {
			_ = c.ws.CloseNow() // the reader ends, and calls Closed
			c.cancel()
			return
		}
	}
}

// writeAll waits as long as the peer takes nothing; the session limits that time.
func (c *webConn) writeAll(batch [][]byte) error {
	for _, frames := range batch {
		if err := c.writeFrames(frames); err != nil {
			return err
		}
	}
	return nil
}

// writeFrames writes each frame with the library, which adds headers of its own.
func (c *webConn) writeFrames(frames []byte) error {
	for len(frames) > 0 {
		framing, payload, rest := dialect.NextFrame(frames)
		if err := c.ws.Write(c.ctx, messageType(framing), payload); err != nil {
			return err
		}
		frames = rest
	}
	return nil
}

// messageType returns the library's type for a framing.
func messageType(f dialect.Framing) websocket.MessageType {
	if f == dialect.Binary {
		return websocket.MessageBinary
	}
	return websocket.MessageText
}

var framingNames = map[dialect.Framing]string{dialect.Text: "text", dialect.Binary: "binary"}

// end sends the reason and closes. The close frame has the same reason as the message before it.
func (c *webConn) end(last *closing) {
	defer c.cancel()
	if c.writeFrames(last.frames) != nil {
		_ = c.ws.CloseNow()
		return
	}
	_ = c.ws.Close(websocket.StatusCode(last.status), string(last.reason)) // waits for the peer's close frame
}
