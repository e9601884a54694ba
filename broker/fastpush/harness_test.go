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

// patience is a safety net: a test that waits this long has failed.
const patience = 20 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// socket is a Conn.
type socket struct {
	net.Conn
	unread []byte
	read   *atomic.Int64 // bytes, of all sockets
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

// site is an http.Server with a Server. It answers a push with the body that it got and the header Authorization, and everything
// else with its method and path.
type site struct {
	*Server
	http   http.Server
	addr   string
	taken  atomic.Int64 // pushes that the Server answered
	pushes atomic.Int64 // and all
	read   atomic.Int64 // bytes
	during func()       // a push
}

// start runs a site for the length of a test.
func start(t *testing.T, change func(*site, *Options)) *site {
	t.Helper()
	s := &site{during: func() {}}
	o := Options{Paths: paths, MaxBody: 1 << 20, Idle: time.Minute, ReadHead: time.Minute, Read: time.Minute, Write: time.Minute}
	o.Answer = func(path, authorization string, body, dst []byte) (int, int, []byte) {
		s.taken.Add(1)
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
			status, later, answer := s.answer(path, r.Header.Get("Authorization"), body, nil)
			w.Header().Set("Content-Type", "application/json")
			if later > 0 {
				w.Header().Set("Retry-After", fmt.Sprint(later))
			}
			w.Header().Set("Content-Length", fmt.Sprint(len(answer)))
			w.WriteHeader(status)
			_, _ = w.Write(answer)
			s.Take(w, r)
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
	go func() { done <- s.http.Serve(sockets{l, &s.read}) }()
	go func() { done <- s.http.Serve(s.Returned()) }()
	t.Cleanup(func() {
		_ = s.http.Close()
		s.Close()
		<-done
		<-done
	})
	return s
}

// answer is that to a push; a body that names a status is answered with it.
func (s *site) answer(path, authorization string, body, dst []byte) (status, later int, answer []byte) {
	s.pushes.Add(1)
	s.during()
	status = http.StatusOK
	if string(body) == "unavailable" {
		status, later = http.StatusServiceUnavailable, 1
	}
	return status, later, fmt.Appendf(dst, "%s %q %s\n", path, authorization, body)
}

// link is a client's connection.
type link struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func (s *site) dial(t *testing.T) *link {
	t.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return &link{t, c, bufio.NewReader(c)}
}

// takenOver is a connection that the Server has.
func (s *site) takenOver(t *testing.T) *link {
	t.Helper()
	l := s.dial(t)
	l.send(request("first"))
	l.expect("first")
	return l
}

func request(body string) string {
	return fmt.Sprintf("POST /v1/push HTTP/1.1\r\nHost: here\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

func (l *link) send(text string) {
	l.t.Helper()
	if _, err := io.WriteString(l, text); err != nil {
		l.t.Fatal(err)
	}
}

// answer is the next one, and whether it says that the connection ends.
func (l *link) answer() (r *http.Response, body string, err error) {
	r, err = http.ReadResponse(l.r, nil)
	if err != nil {
		return nil, "", err
	}
	text, err := io.ReadAll(r.Body)
	return r, string(text), err
}

// expect reads an answer that holds about.
func (l *link) expect(about string) *http.Response {
	l.t.Helper()
	r, body, err := l.answer()
	if err != nil || !strings.Contains(body, about) {
		l.t.Fatalf("%q, %v; want %q", body, err, about)
	}
	return r
}

// ends waits for the end of the connection.
func (l *link) ends() {
	l.t.Helper()
	if text, err := io.ReadAll(l.r); len(text) > 0 || err != nil && isTimeout(err) {
		l.t.Fatalf("the connection did not end: %q, %v", text, err)
	}
}

func isTimeout(err error) bool {
	e, ok := err.(net.Error)
	return ok && e.Timeout()
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// count waits until n connections are taken over.
func (s *site) count(t *testing.T, n int) {
	t.Helper()
	await.True(t, fmt.Sprint(n, " connections are taken over"), func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.conns) == n
	})
}
