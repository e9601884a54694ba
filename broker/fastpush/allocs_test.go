package fastpush

import (
	"io"
	"net/http"
	"testing"
	"time"

	"switchboard/internal/allocs"
)

// repeating is a peer that says the same again and again, and throws away what it hears.
type repeating struct {
	socket
	text string
	left string
}

func (r *repeating) Read(p []byte) (int, error) {
	if r.left == "" {
		r.left = r.text
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

func (r *repeating) Write(p []byte) (int, error)      { return len(p), nil }
func (r *repeating) SetReadDeadline(time.Time) error  { return nil }
func (r *repeating) SetWriteDeadline(time.Time) error { return nil }

func hot() []allocs.Case {
	s := New(Options{Paths: paths, MaxBody: 1 << 20, Idle: time.Minute, ReadHead: time.Minute, Read: time.Minute, Write: time.Minute,
		Answer: func(path, authorization string, body, dst []byte) (int, int, []byte) {
			return http.StatusOK, 0, append(dst, body...)
		}})
	turns := func(text string) func() {
		c := &conn{Conn: &repeating{text: text}, server: s, host: "here", now: time.Now()}
		return func() {
			for range 2 { // it is read, and answered
				if c.turn() != goOn {
					panic(io.EOF)
				}
			}
		}
	}
	return []allocs.Case{
		allocs.Of("request", 0, turns(request(`{"channel":"news","data":{"text":"a message of an ordinary size, about ninety bytes"}}`))),
		allocs.Of("request with a key", 0, turns("POST /v1/push HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer key\r\nContent-Length: 2\r\n\r\n{}")),
	}
}

func TestAllocs(t *testing.T)   { allocs.Test(t, hot()) }
func BenchmarkHot(b *testing.B) { allocs.Bench(b, hot()) }
