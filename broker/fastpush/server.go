package fastpush

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

// Options configures a Server. All fields but Logger are required.
type Options struct {
	Paths []string // the paths that Answer serves
	// Answer answers a POST to path. authorization is the header's value. Answer must not keep body.
	// The answer is JSON, appended to dst or newly allocated. retryAfter, if above 0, is the value of
	// the header Retry-After, in seconds.
	Answer  func(path, authorization string, body, dst []byte) (status, retryAfter int, answer []byte)
	MaxBody int // bytes; net/http refuses longer bodies

	Idle     time.Duration // timeout between two requests; may be up to an eighth shorter
	ReadHead time.Duration // timeout from a request's first byte to the end of its head
	Read     time.Duration // timeout from a request's first byte to the end of its body
	Write    time.Duration // timeout of writing an answer; may be up to an eighth shorter

	Logger zerolog.Logger
}

// Server serves the connections that it took over from an http.Server.
type Server struct {
	opts       Options
	dateCache  atomic.Pointer[dateText]
	draining   atomic.Bool
	handedBack chan net.Conn
	closed     chan struct{} // closed when no Accept receives from handedBack any more
	close      func()

	mu      sync.Mutex // guards conns; held to change draining, and to check it before running.Add
	conns   map[*conn]struct{}
	running sync.WaitGroup
}

// New returns a Server. The http.Server must also serve the listener that Returned returns.
func New(opts Options) *Server {
	s := &Server{opts: opts, handedBack: make(chan net.Conn), closed: make(chan struct{}), conns: make(map[*conn]struct{})}
	s.close = sync.OnceFunc(func() { close(s.closed) })
	return s
}

// TakeOver takes the connection of r over from net/http if r has the simple form and the connection
// is a [Conn]. A handler calls it after it has read r and written the whole answer with its
// Content-Length. TakeOver flushes the answer first.
func (s *Server) TakeOver(w http.ResponseWriter, r *http.Request) {
	if !s.isSimple(r) {
		return
	}
	if n, err := r.Body.Read(make([]byte, 1)); n > 0 || err == nil { // a part of the body is unread
		return
	}
	if !s.beginTakeOver() {
		return
	}
	c := hijack(w)
	if c == nil {
		s.running.Done()
		return
	}
	c.server, c.host = s, r.Host
	s.mu.Lock()
	s.conns[c] = struct{}{}
	if s.draining.Load() { // since beginTakeOver
		c.expireReadSoon()
	}
	s.mu.Unlock()
	go func() {
		defer s.running.Done()
		c.serve()
	}()
}

// beginTakeOver counts a connection in running. It returns false if the server drains.
func (s *Server) beginTakeOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining.Load() {
		return false
	}
	s.running.Add(1)
	return true
}

// hijack takes the connection from net/http. It returns nil if it could not, or if it closed the
// connection.
func hijack(w http.ResponseWriter) *conn {
	control := http.NewResponseController(w)
	if control.Flush() != nil {
		return nil
	}
	hijacked, buffered, err := control.Hijack()
	if err != nil {
		return nil
	}
	taken, ok := hijacked.(Conn)
	if !ok { // it could not be handed back
		_ = hijacked.Close()
		return nil
	}
	early, _ := buffered.Reader.Peek(buffered.Reader.Buffered())
	c := &conn{Conn: taken, lastRead: time.Now()}
	c.requestStart, c.readBuf = c.lastRead, append(make([]byte, 0, max(bufferSize, len(early))), early...)
	return c
}

// isSimple reports whether r, which net/http has read, has the form that parseHead accepts.
func (s *Server) isSimple(r *http.Request) bool {
	for name, values := range r.Header {
		if slices.ContainsFunc(values, func(value string) bool { return !allowed(name, value) }) {
			return false
		}
	}
	return r.TLS == nil && r.Method == http.MethodPost && r.ProtoMajor == 1 && r.ProtoMinor == 1 && !r.Close &&
		len(r.TransferEncoding) == 0 && slices.Contains(s.opts.Paths, r.RequestURI)
}

// release closes a connection, or hands it back to net/http.
func (s *Server) release(c *conn, back bool) {
	s.mu.Lock()
	delete(s.conns, c) // Shutdown and Close no longer use it
	s.mu.Unlock()
	if !back {
		_ = c.Close()
		return
	}
	_ = c.SetDeadline(time.Time{})
	c.Unread(c.readBuf[c.pos:])
	select {
	case s.handedBack <- c.Conn:
	case <-s.closed:
		_ = c.Close()
	}
}

// Shutdown stops taking connections over and ends the present ones. It closes idle connections
// within drainReadTime and busy ones after their answer. A connection with a partial request goes
// back to net/http. When ctx ends, Shutdown calls Close.
func (s *Server) Shutdown(ctx context.Context) {
	s.drain((*conn).expireReadSoon)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.running.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
		s.Close()
	}
}

// Close closes all connections and waits for the calls in progress.
func (s *Server) Close() {
	s.close()
	s.drain(func(c *conn) { _ = c.Close() })
	s.running.Wait()
}

// drain stops taking connections over and calls f for each present one.
func (s *Server) drain(f func(*conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining.Store(true)
	for c := range s.conns {
		f(c)
	}
}

// Returned returns the listener of the connections that go back to net/http. Its Accept fails after
// the listener or the Server is closed.
func (s *Server) Returned() net.Listener { return returned{s} }

type returned struct{ *Server }

// Accept implements net.Listener.
func (r returned) Accept() (net.Conn, error) {
	select {
	case c := <-r.handedBack:
		return c, nil
	case <-r.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (r returned) Close() error {
	r.close()
	return nil
}

// Addr implements net.Listener.
func (r returned) Addr() net.Addr { return &net.TCPAddr{} }
