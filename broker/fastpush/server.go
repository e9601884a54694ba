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
	Paths []string // those that Answer knows
	// Answer answers POST path. authorization is the header's value. Nothing of body may be kept. The answer, in
	// JSON, is appended to dst or newly made; later, if above 0, asks the caller to come back after so many seconds.
	Answer  func(path, authorization string, body, dst []byte) (status, later int, answer []byte)
	MaxBody int // bytes; what is longer is for net/http to refuse

	Idle     time.Duration // between two requests; up to an eighth less
	ReadHead time.Duration // from a request's first byte to the end of its head
	Read     time.Duration // to the end of its body
	Write    time.Duration // until an answer is in the socket's buffer; up to an eighth less

	Logger zerolog.Logger
}

// Server has the connections that were taken over.
type Server struct {
	opts     Options
	second   atomic.Pointer[second]
	draining atomic.Bool
	back     chan net.Conn
	closed   chan struct{} // when nobody takes from back any more
	close    func()

	mu     sync.Mutex // guards conns, and serving against counting up when draining
	conns  map[*conn]struct{}
	served sync.WaitGroup
}

// New returns a Server. Its http.Server must serve Returned as well.
func New(opts Options) *Server {
	s := &Server{opts: opts, back: make(chan net.Conn), closed: make(chan struct{}), conns: make(map[*conn]struct{})}
	s.close = sync.OnceFunc(func() { close(s.closed) })
	return s
}

// Take is called by a handler that has read r and has written the whole answer, with its Content-Length. It takes the
// connection over if r was plain, and its connection is a Conn; then the answer is on its way when Take returns.
func (s *Server) Take(w http.ResponseWriter, r *http.Request) {
	if !s.plain(r) {
		return
	}
	if n, err := r.Body.Read(make([]byte, 1)); n > 0 || err == nil { // a part of the body is unread
		return
	}
	if !s.enter() {
		return
	}
	c := takeOver(w)
	if c == nil {
		s.served.Done()
		return
	}
	c.server, c.host = s, r.Host
	s.mu.Lock()
	s.conns[c] = struct{}{}
	if s.draining.Load() { // since enter
		c.lastCall()
	}
	s.mu.Unlock()
	go func() {
		defer s.served.Done()
		c.serve()
	}()
}

// enter counts a connection; it is false when that is over.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining.Load() {
		return false
	}
	s.served.Add(1)
	return true
}

// takeOver is nil when the connection is still that of net/http, or gone.
func takeOver(w http.ResponseWriter) *conn {
	control := http.NewResponseController(w)
	if control.Flush() != nil {
		return nil
	}
	hijacked, buffered, err := control.Hijack()
	if err != nil {
		return nil
	}
	taken, ok := hijacked.(Conn)
	if !ok { // it could not be given back
		_ = hijacked.Close()
		return nil
	}
	early, _ := buffered.Reader.Peek(buffered.Reader.Buffered())
	c := &conn{Conn: taken, now: time.Now()}
	c.began, c.in = c.now, append(make([]byte, 0, max(bufferSize, len(early))), early...)
	return c
}

// plain says whether r looked as readHead wants them.
func (s *Server) plain(r *http.Request) bool {
	for name, values := range r.Header {
		if slices.ContainsFunc(values, func(value string) bool { return !allowed(name, value) }) {
			return false
		}
	}
	return r.TLS == nil && r.Method == http.MethodPost && r.ProtoMajor == 1 && r.ProtoMinor == 1 && !r.Close &&
		len(r.TransferEncoding) == 0 && slices.Contains(s.opts.Paths, r.RequestURI)
}

// leave ends a connection, or gives it back.
func (s *Server) leave(c *conn, back bool) {
	s.mu.Lock()
	delete(s.conns, c) // Shutdown does not touch it any more
	s.mu.Unlock()
	if !back {
		_ = c.Close()
		return
	}
	_ = c.SetDeadline(time.Time{})
	c.Unread(c.in[c.at:])
	select {
	case s.back <- c.Conn:
	case <-s.closed:
		_ = c.Close()
	}
}

// Shutdown takes over no connection any more, and ends those that were: the idle ones soon, others when they are
// answered. What has only half come goes back to net/http. After ctx it is Close.
func (s *Server) Shutdown(ctx context.Context) {
	s.drain((*conn).lastCall)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		s.served.Wait()
	}()
	select {
	case <-gone:
	case <-ctx.Done():
		s.Close()
	}
}

// Close cuts all connections, and waits for the calls under way.
func (s *Server) Close() {
	s.close()
	s.drain(func(c *conn) { _ = c.Close() })
	s.served.Wait()
}

func (s *Server) drain(do func(*conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining.Store(true)
	for c := range s.conns {
		do(c)
	}
}

// Returned is the listener at which connections come back. It ends with Close of either.
func (s *Server) Returned() net.Listener { return returned{s} }

type returned struct{ *Server }

// Accept implements net.Listener.
func (r returned) Accept() (net.Conn, error) {
	select {
	case c := <-r.back:
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
