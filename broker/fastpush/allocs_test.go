package fastpush

import (
	"io"
	"net/http"
	"testing"
	"time"

	"switchboard/internal/allocs"
)

// repeatingConn is a connection whose peer sends text again and again. It discards writes.
type repeatingConn struct {
	socket
	text string
	rest string
}

func (r *repeatingConn) Read(p []byte) (int, error) {
	if r.rest == "" {
		r.rest = r.text
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *repeatingConn) Write(p []byte) (int, error)      { return len(p), nil }
func (r *repeatingConn) SetReadDeadline(time.Time) error  { return nil }
func (r *repeatingConn) SetWriteDeadline(time.Time) error { return nil }

func hot() []allocs.Case {
	s := New(Options{Paths: paths, MaxBody: 1 << 20, Idle: time.Minute, ReadHead: time.Minute, Read: time.Minute, Write: time.Minute,
		Answer: func(path, authorization string, body, dst []byte) (int, int, []byte) {
			return http.StatusOK, 0, append(dst, body...)
		}})
	serve := func(text string) func() {
		c := &conn{Conn: &repeatingConn{text: text}, server: s, host: "here", lastRead: time.Now()}
		return func() {
			for range 2 { // one call reads, one answers
				if c.serveOnce() != proceed {
					panic(io.EOF)
				}
			}
		}
	}
	return []allocs.Case{
		allocs.Of("request", 0, serve(request(`{"channel":"news","data":{"text":"a message of an ordinary size, about ninety bytes"}}`))),
		allocs.Of("request with a key", 0, serve("POST /v1/push HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer key\r\nContent-Length: 2\r\n\r\n{}")),
	}
}

func TestAllocs(t *testing.T)   { allocs.Test(t, hot()) }
func BenchmarkHot(b *testing.B) { allocs.Bench(b, hot()) }
