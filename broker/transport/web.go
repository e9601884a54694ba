package transport

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"switchboard/broker/loop"
	"switchboard/internal/wire"
)

const (
	// bufferSize is that of a connection's reader and writer. net/http hands out 4 KiB each; with
	// half a KiB an idle connection keeps 7 KB less, and larger messages pass the buffers by.
	bufferSize = 512
	// writeTimeout bounds one write to a socket that takes nothing, so that no goroutine
	// stays for ever; the session closes slow connections earlier.
	writeTimeout = 2 * time.Minute
	// maxQueued is how many bytes wait for the writer before the connection counts as backed up.
	maxQueued = 32 << 10
	// closeTimeout bounds the writing of a close frame.
	closeTimeout = 3 * time.Second
)

// Web serves WebSocket connections behind net/http, each on a goroutine of its own; their
// sessions live on a few goroutine loops.
type Web struct {
	Compress bool // negotiate permessage-deflate without context takeover

	limits Limits
	accept Accept
	loops  []loop.Goroutine
	next   atomic.Uint32
	conns  sync.WaitGroup
}

// NewWeb returns a Web with n loops, which take the indexes first, first+1, ….
func NewWeb(n, first int, limits Limits, accept Accept) *Web {
	w := &Web{limits: limits, accept: accept}
	for i := range n {
		w.loops = append(w.loops, loop.NewGoroutine(first+i))
	}
	return w
}

// Loops are the loops, also before Run.
func (w *Web) Loops() []*loop.Loop {
	list := make([]*loop.Loop, len(w.loops))
	for i, l := range w.loops {
		list[i] = l.Loop
	}
	return list
}

// Run runs the loops until ctx ends and every connection is gone. The sessions must
// have been closed by then, or soon be.
func (w *Web) Run(ctx context.Context) error {
	stop := make(chan struct{})
	var loops sync.WaitGroup
	for _, l := range w.loops {
		loops.Go(func() { l.Run(stop) })
	}
	<-ctx.Done()
	w.conns.Wait()
	close(stop)
	loops.Wait()
	return nil
}

// ServeHTTP upgrades a request and returns; the connection goes on by itself.
func (w *Web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if origin := r.Header.Get("Origin"); !w.limits.Origin(origin, r.Host) {
		http.Error(rw, "origin "+origin+" is not allowed", http.StatusForbidden)
		return
	}
	if reserved(r.Context()) {
		rw.Header().Set("Retry-After", "5")
		http.Error(rw, "no room for another connection", http.StatusServiceUnavailable)
		return
	}
	l := w.loops[w.next.Add(1)%uint32(len(w.loops))]
	c := &webConn{loop: l.Loop}
	opts := &websocket.AcceptOptions{
		InsecureSkipVerify: true, // checked above, by the rule that both listeners share
		OnPingReceived:     func(context.Context, []byte) bool { c.heard(); return true },
		OnPongReceived:     func(context.Context, []byte) { c.heard() },
	}
	if w.Compress {
		opts.CompressionMode = websocket.CompressionNoContextTakeover
	}
	ws, err := websocket.Accept(smallBuffers{rw}, r, opts)
	if err != nil {
		return // Accept has answered
	}
	ws.SetReadLimit(-1) // read skips what is too large
	c.ws = ws
	c.ctx, c.cancel = context.WithCancel(context.Background())
	hello := Hello{Addr: r.RemoteAddr, Token: r.URL.Query().Get("token"), Client: r.URL.Query().Get("client")}
	w.conns.Add(1)
	// A goroutine of its own lets net/http's handler go, with its stack and buffers.
	go func() {
		defer w.conns.Done()
		l.Post(func() { c.to = w.accept(l.Loop, c, hello) })
		c.readLoop(w.limits.Message)
	}()
}

// webConn is one connection of Web.
type webConn struct {
	loop   *loop.Loop
	ws     *websocket.Conn
	ctx    context.Context // ends with the connection
	cancel context.CancelFunc
	to     Receiver // belongs to the loop; nil after the end

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

// onLoop hands f to the session, if it is still there.
func (c *webConn) onLoop(f func(Receiver)) {
	c.loop.Post(func() {
		if c.to != nil {
			f(c.to)
		}
	})
}

func (c *webConn) heard() { c.onLoop(Receiver.Heard) }

func (c *webConn) readLoop(limit int) {
	defer c.cancel()
	defer c.onLoop(func(to Receiver) {
		c.to = nil
		to.Closed()
	})
	defer func() { _ = c.ws.CloseNow() }()
	turn := make(chan struct{}, 1)
	for {
		typ, r, err := c.ws.Reader(c.ctx)
		if err != nil {
			return
		}
		if typ != websocket.MessageText {
			c.onLoop(func(to Receiver) { to.Broken("messages are text frames") })
			_ = c.ws.Close(statusUnsupported, "messages are text frames")
			return
		}
		message, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
		if err == nil && len(message) > limit {
			_, err = io.Copy(io.Discard, r)
			message = nil
		}
		switch {
		case err != nil:
			return
		case message == nil:
			c.onLoop(Receiver.TooLarge)
		default:
			c.loop.Post(func() {
				if c.to != nil {
					c.to.Receive(message)
				}
				turn <- struct{}{}
			})
			<-turn // the session sets the pace
		}
	}
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

// Ping is Conn's. The pong is told by OnPongReceived, so nobody waits for it here.
func (c *webConn) Ping() {
	go func() {
		ctx, cancel := context.WithTimeout(c.ctx, closeTimeout)
		defer cancel()
		_ = c.ws.Ping(ctx)
	}()
}

// Close is Conn's.
func (c *webConn) Close(reason wire.CloseReason, detail string, afterMS int64) {
	c.to = nil
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		c.last = &last{closing(reason, detail, afterMS), reason}
		if c.queued > maxQueued { // it does not read: why would it now
			go func() { _ = c.ws.CloseNow() }()
			return
		}
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

func (c *webConn) writeAll(batch []wire.Frame) error {
	ctx, cancel := context.WithTimeout(c.ctx, writeTimeout)
	defer cancel()
	for _, f := range batch {
		if err := c.ws.Write(ctx, websocket.MessageText, f.JSON()); err != nil {
			return err
		}
	}
	return nil
}

// end says why and closes. The status is the same word as in the message before it.
func (c *webConn) end(l *last) {
	ctx, cancel := context.WithTimeout(c.ctx, closeTimeout)
	defer cancel()
	if c.ws.Write(ctx, websocket.MessageText, l.frame.JSON()) != nil {
		_ = c.ws.CloseNow()
		return
	}
	_ = c.ws.Close(websocket.StatusCode(l.reason.Status()), string(l.reason)) // waits for the peer's, 5 s at most
}

// smallBuffers hands out small buffers with a hijacked connection.
type smallBuffers struct{ http.ResponseWriter }

// Hijack implements http.Hijacker.
func (s smallBuffers) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	h, ok := s.ResponseWriter.(http.Hijacker)
	if !ok {
		return nil, nil, errors.New("the connection cannot be upgraded")
	}
	conn, rw, err := h.Hijack()
	if err != nil {
		return nil, nil, err
	}
	if err := rw.Flush(); err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	n := rw.Reader.Buffered()
	r := bufio.NewReaderSize(io.MultiReader(io.LimitReader(rw.Reader, int64(n)), conn), max(bufferSize, n))
	if _, err := r.Peek(n); err != nil { // what the client sent early must lie in the new buffer
		return nil, nil, errors.Join(err, conn.Close())
	}
	return conn, bufio.NewReadWriter(r, bufio.NewWriterSize(conn, bufferSize)), nil
}
