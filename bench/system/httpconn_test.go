package system

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dialAnswering returns a connection to a server that answers two calls with text. If text is
// empty, the server closes the connection.
func dialAnswering(t *testing.T, text string) *HTTPConn {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		for range 2 {
			if _, err := c.Read(make([]byte, 1000)); err != nil || text == "" {
				return
			}
			_, _ = io.WriteString(c, text)
		}
	}()
	h, err := DialHTTP(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _, _ = h.Close(), l.Close(), <-done })
	return h
}

// TestPost reads two responses of each form on one connection. The first must be read completely
// before the second.
func TestPost(t *testing.T) {
	for text, want := range map[string]string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello":                                            "hello",
		"HTTP/1.1 202 Accepted\r\ncontent-length:0\r\nServer: x\r\n\r\n":                               "",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n":    "hello",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nTrailer: yes\r\n\r\n": "hello",
	} {
		h := dialAnswering(t, text)
		for i := range 2 {
			if got, err := h.Post(t.Context(), "/", "", []byte("body")); err != nil || string(got) != want {
				t.Errorf("call %d, %q: got %q, %v", i+1, text, got, err)
			}
		}
	}
}

func TestPostErrors(t *testing.T) {
	for text, want := range map[string]string{
		"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nlate": "answered with 503: late",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n":                     "is not a valid length",
		"HTTP/1.0 200 OK\r\n\r\n":                                           "not a status line",
		"hello\r\n\r\n":                                                     "not a status line",
		"":                                                                  "EOF",
	} {
		if _, err := dialAnswering(t, text).Post(t.Context(), "/", "", nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want something about %q", text, err, want)
		}
	}
}

func TestFloorWriterErrors(t *testing.T) {
	for _, args := range [][]string{nil, {"x", "lines", "c"}} {
		if err := FloorWriter(args, strings.NewReader(""), io.Discard); err == nil {
			t.Errorf("%q was accepted", args)
		}
	}
	closed := errors.New("closed")
	if err := FloorWriter([]string{"1", "lines", "c"}, strings.NewReader(""), failingWriter{closed}); !errors.Is(err, closed) {
		t.Errorf("got %v", err)
	}
}

// failingWriter returns an error from every Write.
type failingWriter struct{ err error }

func (f failingWriter) Write([]byte) (int, error) { return 0, fmt.Errorf("write: %w", f.err) }
