package attack

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gobwas/ws"
)

// loris takes as long as it can, over something.
type loris struct {
	name string
	open func(s *siege) (*assailant, error) // up to where it begins to take long
	head string                             // said at once
	drip string                             // said again and again
	want []string                           // how it ends
}

const (
	lorises = 20 // of each kind
	drop    = 100 * time.Millisecond
)

func port(http bool) func(*siege) (*assailant, error) {
	return func(s *siege) (*assailant, error) { return s.dial(http, nil) }
}

func upgraded(e entrance) func(*siege) (*assailant, error) {
	return func(s *siege) (*assailant, error) {
		a, err := s.dial(e.http, nil)
		if err == nil {
			err = a.upgrade("", e.extensions)
		}
		return a, err
	}
}

// connected is a user's connection.
func connected(e entrance) func(*siege) (*assailant, error) {
	return func(s *siege) (*assailant, error) {
		a, err := s.dial(e.http, nil)
		if err == nil && e.frames {
			err = a.upgrade("", e.extensions)
		}
		if err == nil {
			a.say(connectAs(fmt.Sprintf("loris-%d", s.comer.Add(1)), s.token("loris-"+e.name)))
		}
		return a, err
	}
}

// pushed is the connection of a backend that has pushed: it is not net/http's any more.
func pushed(s *siege) (*assailant, error) {
	a, err := s.dial(true, nil)
	if err == nil {
		const body = `{"channel":"room:loris","data":1}`
		a.raw(s.pushHead(len(body)) + body)
		_, err = http.ReadResponse(a.in, nil) // without its body, which ends with its only line
	}
	if err == nil {
		_, err = a.in.ReadString('\n')
	}
	return a, err
}

func (s *siege) pushHead(length int) string {
	return fmt.Sprintf("POST /v1/push HTTP/1.1\r\nHost: broker\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", s.key, length)
}

// kinds are the lorises: those at the TCP port, and those at the HTTP port.
func (s *siege) kinds() []loris {
	ping := string(ws.MustCompileFrame(ws.MaskFrame(ws.NewPingFrame(nil))))
	const frame = "\x81\xfe\xff\x00\x00\x00\x00\x00" // of 65,280 bytes, which come one by one
	lines := []string{"closing:bad_request"}
	frames := []string{"closing:bad_request 4006"}
	return []loris{
		{"a line", port(false), `{"type":"connect","client":"`, "x", lines},
		{"empty lines", port(false), "\n", "\n", lines},
		{"a handshake on the TCP port", port(false), "GET /ws HTTP/1.1\r\nX: ", "x", []string{""}},
		{"a frame on the TCP port", upgraded(entrances[1]), frame, "x", frames},
		{"pings in the place of a connect", upgraded(entrances[1]), ping, ping, frames},
		{"pongs in the place of a connect", port(false), "", `{"type":"pong"}` + "\n", []string{"error:bad_request closing:bad_request"}},
		{"a user's line", connected(entrances[0]), `{"type":"publish","channel":"room:x","data":"`, "x", []string{"closing:idle"}},
		{"a user's frame", connected(entrances[1]), frame, "x", []string{"closing:idle 4008"}},

		{"a handshake on the HTTP port", port(true), "GET /ws HTTP/1.1\r\nX: ", "x", []string{"", "HTTP 408", "HTTP 400"}},
		{"a frame on the HTTP port", upgraded(entrances[2]), frame, "x", frames},
		{"a frame where it may be compressed", upgraded(entrances[3]), frame, "x", frames},
		{"pings where it may be compressed", upgraded(entrances[3]), ping, ping, frames},
		{"a user's frame where it may be compressed", connected(entrances[3]), frame, "x", []string{"closing:idle 4008"}},
		{"a pusher's body", port(true), s.pushHead(60_000), " ", []string{"HTTP 400", "HTTP 408"}},
		{"a stranger's body", port(true), strings.Replace(s.pushHead(60_000), "Bearer", "Basic", 1), " ", []string{"HTTP 401"}},
		{"the second head of a pusher", pushed, "POST /v1/push HTTP/1.1\r\nX: ", "x", []string{"", "HTTP 408"}},
		{"the second body of a pusher", pushed, s.pushHead(60_000), " ", []string{"", "HTTP 408"}},
	}
}

// slowLoris has some of each at work until the broker ends the last of them.
func slowLoris(t *testing.T, s *siege) {
	var all sync.WaitGroup
	var mu sync.Mutex // guards wrong
	wrong := map[string]int{}
	for _, kind := range s.kinds() {
		for range lorises {
			a, err := kind.open(s)
			if err != nil {
				t.Fatalf("%s: %v", kind.name, err)
			}
			t.Cleanup(func() { _ = a.Close() })
			all.Go(func() {
				if got := a.trickle(kind); !slices.Contains(kind.want, got) {
					mu.Lock()
					defer mu.Unlock()
					wrong[fmt.Sprintf("%s: told %q, want one of %q", kind.name, got, kind.want)]++
				}
			})
		}
	}
	s.holds(t)
	all.Wait()
	for what, n := range wrong {
		t.Errorf("%d × %s", n, what)
	}
	s.holds(t)
}

// trickle says drip by drip, until the broker hangs up.
func (a *assailant) trickle(kind loris) string {
	a.raw(kind.head)
	over := make(chan struct{})
	var dripping sync.WaitGroup
	dripping.Go(func() {
		tick := time.NewTicker(drop)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if _, err := net.Conn.Write(a.Conn, []byte(kind.drip)); err != nil {
					return
				}
			case <-over:
				return
			}
		}
	})
	verdict := a.verdict()
	close(over)
	dripping.Wait()
	return verdict
}
