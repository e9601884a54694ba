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
	"switchboard/internal/linger"
)

// bufferSize is the size of a connection's read and write buffers. Those of net/http have 4 KiB
// each; with half a KiB an idle connection takes 7 KB less. Larger messages bypass the buffers.
const bufferSize = 512

// Web serves WebSocket and streams in response bodies on net/http. The connections that it does not
// hand over to a Poller have a goroutine each, and their sessions live on the loops of Web.
type Web struct {
	Compress bool    // negotiate permessage-deflate without context takeover
	Poller   *Poller // takes connections without TLS and compression; nil for none

	limits     Limits
	dialects   Dialects
	accept     Accept
	lingerTime time.Duration
	loops      []loop.Goroutine
	next       atomic.Uint32
	alive      context.Context    // its end closes all connections
	closeAll   context.CancelFunc // ends alive

	mu       sync.Mutex // guards stopping; conns is not incremented while stopping
	stopping bool
	conns    sync.WaitGroup
}

// NewWeb returns a Web with n loops, whose indexes are first, first+1, ….
func NewWeb(n, first int, limits Limits, dialects Dialects, accept Accept) *Web {
	w := &Web{limits: limits, dialects: dialects, accept: accept, lingerTime: linger.Time}
	w.alive, w.closeAll = context.WithCancel(context.Background())
	for i := range n {
		w.loops = append(w.loops, loop.NewGoroutine(first+i))
	}
	return w
}

// Loops returns the loops, also before Run.
func (w *Web) Loops() []*loop.Loop {
	list := make([]*loop.Loop, len(w.loops))
	for i, l := range w.loops {
		list[i] = l.Loop
	}
	return list
}

// Run runs the loops until ctx ends and every connection is gone. The sessions should have been
// closed by then: connections that are left after lingerTime are closed at once.
func (w *Web) Run(ctx context.Context) error {
	stop := make(chan struct{})
	var loops sync.WaitGroup
	for _, l := range w.loops {
		loops.Go(func() { l.Run(stop) })
	}
	<-ctx.Done()
	w.mu.Lock()
	w.stopping = true
	w.mu.Unlock()
	timer := time.AfterFunc(w.lingerTime, w.closeAll)
	w.conns.Wait()
	timer.Stop()
	w.closeAll()
	close(stop)
	loops.Wait()
	return nil
}

// enter counts a connection. It returns false when Run is about to end.
func (w *Web) enter() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stopping {
		w.conns.Add(1)
	}
	return !w.stopping
}

// ServeHTTP answers a WebSocket handshake and returns; the connection stays open.
func (w *Web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	page := PageOf(r)
	page.Silent = false // a browser sends an Origin with each handshake
	if refusal := w.limits.Page(page); refusal != "" {
		http.Error(rw, refusal, http.StatusForbidden)
		return
	}
	gated := gatedConnOf(r.Context())
	if gated != nil && gated.reserved {
		noRoom(rw)
		return
	}
	opening, err := w.dialects.openWebSocket(r.URL)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	from, refusal := w.limits.enterForwarded(r)
	if refusal != nil {
		tooMany(rw, refusal)
		return
	}
	if w.handOver(rw, r, gated, from, opening) {
		return
	}
	if !w.enter() {
		w.limits.Addresses.Leave(from.slot)
		noRoom(rw)
		return
	}
	l := w.loops[w.next.Add(1)%uint32(len(w.loops))]
	c := &webConn{queueConn: w.queueConn(l.Loop, opening, from.remoteAddr(r))}
	opts := &websocket.AcceptOptions{
		InsecureSkipVerify: true, // checked above, by the rule that both listeners share
		OnPingReceived:     func(context.Context, []byte) bool { return c.control() && !c.full() },
		OnPongReceived:     func(context.Context, []byte) { c.control() },
	}
	if w.Compress {
		opts.CompressionMode = websocket.CompressionNoContextTakeover
	}
	var socket net.Conn
	c.frames = &frameCounter{report: func() { c.control() }}
	ws, err := websocket.Accept(smallBuffers{rw, &socket, c.frames}, r, opts)
	if err != nil {
		w.limits.Addresses.Leave(from.slot)
		w.conns.Done()
		return // Accept has answered
	}
	ws.SetReadLimit(-1) // readLoop skips messages that are too large
	c.ws = ws
	c.ctx, c.cancel = context.WithCancel(w.alive)
	context.AfterFunc(c.ctx, func() { _ = socket.Close() }) // ends any call of the library
	// With a goroutine of its own the handler can return, which frees the stack and buffers of
	// net/http.
	go func() {
		defer w.conns.Done()
		defer w.limits.Addresses.Leave(from.slot)
		l.Post(func() { c.open(w.accept(l.Loop, c, opening.Requests)) })
		c.readLoop(w.limits, len(opening.Requests) > 0)
	}()
}

// noRoom refuses a request because of the Gate.
func noRoom(rw http.ResponseWriter) {
	rw.Header().Set("Retry-After", "5")
	http.Error(rw, "no room for another connection", http.StatusServiceUnavailable)
}

// smallBuffers gives a hijacked connection small buffers, keeps a reference to it in socket, and
// counts the frames that are read from it.
type smallBuffers struct {
	http.ResponseWriter
	socket *net.Conn
	frames *frameCounter
}

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
	early, err := r.Peek(n) // the new buffer must hold what the client sent early
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	s.frames.scan(early)
	s.frames.Conn, *s.socket = conn, conn
	return s.frames, bufio.NewReadWriter(r, bufio.NewWriterSize(conn, bufferSize)), nil
}
