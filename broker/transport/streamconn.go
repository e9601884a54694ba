package transport

import (
	"context"
	"net/http"
	"time"

	"switchboard/broker/dialect"
	"switchboard/internal/wire"
)

// streamConn is a stream in a response of net/http. The handler's goroutine writes; everything
// else happens on the loop.
type streamConn struct {
	queueConn

	control *http.ResponseController
	closed  bool          // belongs to the loop; set by Close
	wake    chan struct{} // one slot; filled after queue or last has changed
	cancel  context.CancelFunc

	// queueConn.mu guards the fields below.
	last  []byte // set once: the stream ends after it
	ended bool   // the handler does not write any more
}

// serveStream runs a stream until it ends. The server's own deadlines do not apply to it.
func (w *Web) serveStream(rw http.ResponseWriter, r *http.Request, from client, opening dialect.Opening) {
	control := http.NewResponseController(rw)
	_ = control.SetReadDeadline(time.Time{}) // not every ResponseWriter of a test has deadlines
	_ = control.SetWriteDeadline(time.Time{})
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	l := w.loops[w.next.Add(1)%uint32(len(w.loops))]
	c := &streamConn{queueConn: w.queueConn(l.Loop, opening, from.remoteAddr(r)), control: control, wake: make(chan struct{}, 1), cancel: cancel}
	defer context.AfterFunc(w.alive, c.abort)()
	l.Post(func() {
		if to := w.accept(l.Loop, c, opening.Requests); !c.closed {
			c.receiver = to
		}
	})
	c.writeLoop(ctx, &responseBody{rw: rw})
	c.finish()
}

// writeLoop writes what is queued until the stream ends. A write waits as long as the peer takes
// nothing; the session limits that time.
func (c *streamConn) writeLoop(ctx context.Context, w *responseBody) {
	written := 0
	for {
		batch, last := c.take(written)
		written = 0
		for _, b := range batch {
			if w.write(b) != nil {
				return
			}
			written += len(b)
		}
		if last != nil {
			_ = w.write(last)
			return
		}
		if len(batch) > 0 {
			if c.control.Flush() != nil {
				return
			}
			continue
		}
		select {
		case <-c.wake:
		case <-ctx.Done():
			return
		}
	}
}

// take empties the queue. written is the size of the previous batch, which has gone out. If last is
// not nil, the stream ends with the batch and then last.
func (c *streamConn) take(written int) (batch [][]byte, last []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queued -= written
	batch, c.queue = c.queue, nil
	if len(batch) == 0 && c.writableDue && c.last == nil {
		c.writableDue = false
		c.onLoop(Receiver.Writable)
	}
	return batch, c.last
}

// finish ends the stream before the handler returns.
func (c *streamConn) finish() {
	c.mu.Lock()
	c.ended, c.queue = true, nil
	c.mu.Unlock()
	c.onLoop(func(to Receiver) {
		c.receiver = nil
		to.Closed()
	})
}

// abort makes the handler return, even if it is blocked in a write.
func (c *streamConn) abort() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended { // if it has ended, the connection may already serve another request
		c.cancel()
		_ = c.control.SetWriteDeadline(time.Unix(1, 0))
	}
}

func (c *streamConn) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *streamConn) enqueue(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last != nil || c.ended || len(b) == 0 {
		return
	}
	c.enqueueLocked(b)
	c.signal()
}

// Send implements Conn.
func (c *streamConn) Send(e wire.Event) { c.enqueue(c.encoding.AppendEvent(nil, e)) }

// Write implements Conn.
func (c *streamConn) Write(b *dialect.Batch) { c.enqueue(c.encode(b)) }

// Ping implements Conn.
func (c *streamConn) Ping() { c.enqueue(c.encoding.AppendPing(nil)) }

// Close implements Conn. The queue goes out first, if the peer reads it within lingerTime.
func (c *streamConn) Close(reason wire.CloseReason, detail string, afterMS int64) {
	c.receiver, c.closed = nil, true
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil && !c.ended {
		c.last, _ = c.encoding.AppendClosing(nil, reason, detail, afterMS)
		time.AfterFunc(c.lingerTime, c.abort) // the peer may read nothing at all
		c.signal()
	}
}
