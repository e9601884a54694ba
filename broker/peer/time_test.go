package peer

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"switchboard/registry"
)

// pipes is a listener and its dialer without a network, so that time can be a bubble's.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	p.conns <- far
	return near, nil
}

func TestSilentLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		l := New(Options{Self: func() string { return "b" }, Handle: func(Hint) {}})
		l.SetServers([]registry.Server{{ID: "a"}})
		p := pipes{make(chan net.Conn), make(chan struct{})}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			l.Handler().ServeHTTP(w, r)
			close(ended)
		})}
		served := make(chan error)
		go func() { served <- server.Serve(p) }()
		conn, _, err := websocket.Dial(t.Context(), "ws://b/peer/link?from=a",
			&websocket.DialOptions{HTTPClient: &http.Client{Transport: &http.Transport{DialContext: p.dial}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Write(t.Context(), websocket.MessageBinary, []byte{0}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		heard := time.Now()
		if !l.Lost() || l.Lost() {
			t.Error("a new link is evidence, once")
		}
		times := 0 // up to 9.5 s: at 10 s the link ends, which is evidence of its own
		for range 19 {
			<-time.After(500 * time.Millisecond)
			if l.Lost() {
				times++
			}
		}
		<-ended
		if silent := time.Since(heard); silent != hangUpAfter {
			t.Errorf("hung up on after %v", silent)
		}
		if times != 9 { // after 1.5, 2.5, …, 9.5 s
			t.Errorf("lost was true %d times", times)
		}
		conn.CloseNow()
		close(p.done)
		if err := <-served; !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}

func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dials := make(chan time.Time)
		l := New(Options{Self: func() string { return "a" }})
		l.client.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			select {
			case dials <- time.Now():
			case <-ctx.Done():
			}
			return nil, errors.New("nobody there")
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- l.Run(ctx) }()
		l.SetServers([]registry.Server{{ID: "b", Host: "b:1"}})
		last := <-dials
		for _, most := range []time.Duration{100, 200, 400, 800, 1600, 2000, 2000} {
			now := <-dials
			if gap := now.Sub(last); gap < most*time.Millisecond/2 || gap >= most*time.Millisecond {
				t.Errorf("dialled after %v, want at most %d ms", gap, most)
			}
			last = now
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
