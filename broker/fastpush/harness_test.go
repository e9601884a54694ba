package fastpush

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"switchboard/internal/await"
)

// testTimeout bounds every wait of a test.
const testTimeout = 20 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// socket is a Conn that adds the bytes read to a counter.
type socket struct {
	net.Conn
	unread []byte
	read   *atomic.Int64 // bytes read from all sockets
}

func (s *socket) Unread(p []byte) { s.unread = p }

func (s *socket) Read(p []byte) (int, error) {
	if n := copy(p, s.unread); n > 0 {
		s.unread = s.unread[n:]
		return n, nil
	}
	n, err := s.Conn.Read(p)
	s.read.Add(int64(n))
	return n, err
}

type sockets struct {
	net.Listener
	read *atomic.Int64
}

func (l sockets) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &socket{Conn: c, read: l.read}, err
}

// testServer is an http.Server with a Server. It answers a push with its path, its header
// Authorization and its body, and any other request with its method and path.
type testServer struct {
	*Server
	http       http.Server
	addr       string
	fastPushes atomic.Int64 // pushes that the Server answered
	pushes     atomic.Int64 // all pushes
	bytesRead  atomic.Int64 // from all sockets
	onPush     func()       // called for each push
}

// start runs a testServer until the test ends.
func start(t *testing.T, change func(*testServer, *Options)) *testServer {
	t.Helper()
	s := &testServer{onPush: func() {}}
	o := Options{Paths: paths, MaxBody: 1 << 20, Idle: time.Minute, ReadHead: time.Minute, Read: time.Minute, Write: time.Minute}
	o.Answer = func(path, authorization string, body, dst []byte) (int, int, []byte) {
		s.fastPushes.Add(1)
		return s.answer(path, authorization, body, dst)
	}
	if change != nil {
		change(s, &o)
	}
	s.Server = New(o)
	mux := http.NewServeMux()
	for _, path := range paths {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(o.MaxBody)))
			if err != nil {
				http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
				return
			}
			status, retryAfter, answer := s.answer(path, r.Header.Get("Authorization"), body, nil)
			w.Header().Set("Content-Type", "application/json")
			if retryAfter > 0 {
				w.Header().Set("Retry-After", fmt.Sprint(retryAfter))
			}
			w.Header().Set("Content-Length", fmt.Sprint(len(answer)))
			w.WriteHeader(status)
			_, _ = w.Write(answer)
			s.TakeOver(w, r)
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, r.Method, r.URL.Path) })
	s.http.Handler = http.NewCrossOriginProtection().Handler(mux)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	done := make(chan error, 2)
	go func() { done <- s.http.Serve(sockets{l, &s.bytesRead}) }()
	go func() { done <- s.http.Serve(s.Returned()) }()
	t.Cleanup(func() {
		_ = s.http.Close()
		s.Close()
		<-done
		<-done
	})
	return s
}

// answer answers a push. The body "unavailable" gets status 503.
func (s *testServer) answer(path, authorization string, body, dst []byte) (status, retryAfter int, answer []byte) {
	s.pushes.Add(1)
	s.onPush()
	status = http.StatusOK
	if string(body) == "unavailable" {
		status, retryAfter = http.StatusServiceUnavailable, 1
	}
	return status, retryAfter, fmt.Appendf(dst, "%s %q %s\n", path, authorization, body)
}

// client is a client's connection.
type client struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func (s *testServer) dial(t *testing.T) *client {
	t.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(testTimeout))
	return &client{t, c, bufio.NewReader(c)}
}

// dialTakenOver returns a connection that the Server has taken over.
func (s *testServer) dialTakenOver(t *testing.T) *client {
	t.Helper()
	c := s.dial(t)
	c.send(request("first"))
	c.expect("first")
	return c
}

func request(body string) string {
	return fmt.Sprintf("POST /v1/push HTTP/1.1\r\nHost: here\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
}

// answer reads the next answer.
func (c *client) answer() (r *http.Response, body string, err error) {
	r, err = http.ReadResponse(c.r, nil)
	if err != nil {
		return nil, "", err
	}
	text, err := io.ReadAll(r.Body)
	return r, string(text), err
}

// expect reads the next answer, whose body must contain want.
func (c *client) expect(want string) *http.Response {
	c.t.Helper()
	r, body, err := c.answer()
	if err != nil || !strings.Contains(body, want) {
		c.t.Fatalf("%q, %v; want %q", body, err, want)
	}
	return r
}

// expectClosed waits until the connection is closed, without another answer.
func (c *client) expectClosed() {
	c.t.Helper()
	if text, err := io.ReadAll(c.r); len(text) > 0 || err != nil && isTimeout(err) {
		c.t.Fatalf("the connection did not end: %q, %v", text, err)
	}
}

func isTimeout(err error) bool {
	e, ok := err.(net.Error)
	return ok && e.Timeout()
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// waitTakenOver waits until the Server has n connections.
func (s *testServer) waitTakenOver(t *testing.T, n int) {
	t.Helper()
	await.True(t, fmt.Sprint(n, " connections are taken over"), func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.conns) == n
	})
}
