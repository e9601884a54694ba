//go:build long

package attack

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gobwas/ws"
)

// A loris sends a request as slowly as possible (a "slow loris" attack).
type loris struct {
	name string
	open func(s *scenario) (*attacker, error) // opens the connection
	head string                               // sent at once
	drip string                               // sent every dripInterval
	want []string                             // allowed outcomes
}

const (
	lorisesPerKind = 20
	dripInterval   = 100 * time.Millisecond
)

// openPort returns a function that opens a connection to a port.
func openPort(http bool) func(*scenario) (*attacker, error) {
	return func(s *scenario) (*attacker, error) { return s.dial(http, nil) }
}

// openWebSocket returns a function that opens a WebSocket.
func openWebSocket(e endpoint) func(*scenario) (*attacker, error) {
	return func(s *scenario) (*attacker, error) {
		a, err := s.dial(e.http, nil)
		if err == nil {
			err = a.upgrade("", e.extensions)
		}
		return a, err
	}
}

// openConnected returns a function that opens a connection and sends a connect request of a user.
func openConnected(e endpoint) func(*scenario) (*attacker, error) {
	return func(s *scenario) (*attacker, error) {
		a, err := s.dial(e.http, nil)
		if err == nil && e.frames {
			err = a.upgrade("", e.extensions)
		}
		if err == nil {
			a.send(connectAs(fmt.Sprintf("loris-%d", s.clientCount.Add(1)), s.token("loris-"+e.name)))
		}
		return a, err
	}
}

// openPushed opens the connection of a backend and pushes once. The fast push then has taken the
// connection over from net/http.
func openPushed(s *scenario) (*attacker, error) {
	a, err := s.dial(true, nil)
	if err == nil {
		const body = `{"channel":"hall:loris","data":1}`
		a.sendRaw(s.pushHead(len(body)) + body)
		_, err = http.ReadResponse(a.in, nil) // the body, one line, is read below
	}
	if err == nil {
		_, err = a.in.ReadString('\n')
	}
	return a, err
}

func (s *scenario) pushHead(length int) string {
	return fmt.Sprintf("POST /v1/push HTTP/1.1\r\nHost: broker\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", s.Key, length)
}

// lorisKinds returns the lorises for the TCP port and for the HTTP port.
func (s *scenario) lorisKinds() []loris {
	ping := string(ws.MustCompileFrame(ws.MaskFrame(ws.NewPingFrame(nil))))
	const frame = "\x81\xfe\xff\x00\x00\x00\x00\x00" // the header of a frame with 65,280 bytes
	lines := []string{"closing:bad_request"}
	frames := []string{"closing:bad_request 4006"}
	return []loris{
		{"a line", openPort(false), `{"type":"connect","client":"`, "x", lines},
		{"empty lines", openPort(false), "\n", "\n", lines},
		{"a handshake on the TCP port", openPort(false), "GET /ws HTTP/1.1\r\nX: ", "x", []string{""}},
		{"a frame on the TCP port", openWebSocket(endpoints[1]), frame, "x", frames},
		{"pings instead of a connect", openWebSocket(endpoints[1]), ping, ping, frames},
		{"pongs instead of a connect", openPort(false), "", `{"type":"pong"}` + "\n", []string{"error:bad_request closing:bad_request"}},
		{"a user's line", openConnected(endpoints[0]), `{"type":"publish","channel":"hall:x","data":"`, "x", []string{"closing:idle"}},
		{"a user's frame", openConnected(endpoints[1]), frame, "x", []string{"closing:idle 4008"}},

		{"a handshake on the HTTP port", openPort(true), "GET /ws HTTP/1.1\r\nX: ", "x", []string{"", "HTTP 408", "HTTP 400"}},
		{"a frame on the HTTP port", openWebSocket(endpoints[2]), frame, "x", frames},
		{"a frame, with compression", openWebSocket(endpoints[3]), frame, "x", frames},
		{"pings, with compression", openWebSocket(endpoints[3]), ping, ping, frames},
		{"a user's frame, with compression", openConnected(endpoints[3]), frame, "x", []string{"closing:idle 4008"}},
		{"a pusher's body", openPort(true), s.pushHead(60_000), " ", []string{"HTTP 400", "HTTP 408"}},
		{"a body without a key", openPort(true), strings.Replace(s.pushHead(60_000), "Bearer", "Basic", 1), " ", []string{"HTTP 401"}},
		{"the second header of a pusher", openPushed, "POST /v1/push HTTP/1.1\r\nX: ", "x", []string{"", "HTTP 408"}},
		{"the second body of a pusher", openPushed, s.pushHead(60_000), " ", []string{"", "HTTP 408"}},
	}
}

// slowLoris runs several lorises of each kind until the broker has closed all of them.
func slowLoris(t *testing.T, s *scenario) {
	var all sync.WaitGroup
	var mu sync.Mutex // guards wrong
	wrong := map[string]int{}
	for _, kind := range s.lorisKinds() {
		for range lorisesPerKind {
			a, err := kind.open(s)
			if err != nil {
				t.Fatalf("%s: %v", kind.name, err)
			}
			t.Cleanup(func() { _ = a.Close() })
			all.Go(func() {
				if got := a.runLoris(kind); !slices.Contains(kind.want, got) {
					mu.Lock()
					defer mu.Unlock()
					wrong[fmt.Sprintf("%s: got %q, want one of %q", kind.name, got, kind.want)]++
				}
			})
		}
	}
	s.checkService(t)
	all.Wait()
	for what, n := range wrong {
		t.Errorf("%d × %s", n, what)
	}
	s.checkService(t)
}

// runLoris sends the drips until the broker closes the connection.
func (a *attacker) runLoris(kind loris) string {
	a.sendRaw(kind.head)
	ended := make(chan struct{})
	var dripping sync.WaitGroup
	dripping.Go(func() {
		tick := time.NewTicker(dripInterval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if _, err := io.WriteString(a, kind.drip); err != nil {
					return
				}
			case <-ended:
				return
			}
		}
	})
	outcome := a.outcome()
	close(ended)
	dripping.Wait()
	return outcome
}
