package transport

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/broker/limit"
)

// resetting is a server on HTTP/2 whose client resets streams.
type resetting struct {
	t       *testing.T
	server  *httptest.Server
	started chan struct{} // holds an element for each handler that waits for the reset
	ended   chan struct{} // holds an element for each handler that has returned
	refused atomic.Int32
	conns   atomic.Int32 // connections so far
}

// newResetting starts a server. before is called in the handler, which then waits for the end of
// the stream.
func newResetting(t *testing.T, burst int, proxies []netip.Prefix, before http.HandlerFunc) *resetting {
	s := &resetting{t: t, started: make(chan struct{}, 1), ended: make(chan struct{}, 1)}
	limited := &LimitResets{
		Proxies: proxies, Refused: func() { s.refused.Add(1) }, rate: limit.New(1e-6, burst),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			before(w, r)
			s.started <- struct{}{}
			<-r.Context().Done()
		}),
	}
	s.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limited.ServeHTTP(w, r)
		s.ended <- struct{}{}
	}))
	s.server.Listener = Listener{Listener: s.server.Listener, Gate: NewGate(10), Reserve: NewGate(1)}
	s.server.EnableHTTP2 = true
	s.server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		s.conns.Add(1)
		return ConnContext(ctx, c)
	}
	s.server.StartTLS()
	t.Cleanup(s.server.Close)
	return s
}

// reset opens a stream, and resets it when its handler runs. A stream that the end of the
// connection has refused is opened again.
func (s *resetting) reset() {
	s.t.Helper()
	for {
		ctx, cancel := context.WithCancel(s.t.Context())
		failed := make(chan struct{})
		go func() {
			defer close(failed)
			s.get(ctx)
		}()
		ran := false
		select {
		case <-s.started:
			ran = true
		case <-failed:
		case <-time.After(testTimeout):
			s.t.Error("the handler does not run")
		}
		cancel()
		<-failed
		if ran {
			<-s.ended
			return
		}
		if s.t.Failed() {
			s.t.FailNow()
		}
	}
}

// get makes a request. If it is answered, get waits until ctx ends.
func (s *resetting) get(ctx context.Context) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.server.URL, nil)
	if err != nil {
		s.t.Error(err)
		return
	}
	if resp, err := s.server.Client().Do(req); err == nil {
		<-ctx.Done()
		_ = resp.Body.Close()
	}
}

// TestLimitResets resets more streams than the burst.
func TestLimitResets(t *testing.T) {
	const burst = 20
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	for name, tc := range map[string]struct {
		proxies []netip.Prefix
		before  http.HandlerFunc
		conns   int32
	}{
		"without an answer": {nil, func(http.ResponseWriter, *http.Request) {}, 2},
		"an answer that is not sent": {nil, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusOK)
			_, _ = w.Write([]byte("soon"))
		}, 2},
		"after the answer has begun": {nil, func(w http.ResponseWriter, _ *http.Request) {
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
		}, 1},
		"with an API key": {nil, Authenticated, 1},
		"a proxy":         {loopback, func(http.ResponseWriter, *http.Request) {}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newResetting(t, burst, tc.proxies, tc.before)
			for range burst + 5 {
				s.reset()
			}
			if got := s.conns.Load(); got != tc.conns || s.refused.Load() != tc.conns-1 {
				t.Errorf("%d connections, %d refused, want %d", got, s.refused.Load(), tc.conns)
			}
		})
	}
}

// TestEndedConnectionIsNoReset ends a connection with more streams than the burst. None of them was
// reset.
func TestEndedConnectionIsNoReset(t *testing.T) {
	s := newResetting(t, 1, nil, func(http.ResponseWriter, *http.Request) {})
	var socket net.Conn
	s.server.Client().Transport.(*http.Transport).DialContext = func(ctx context.Context, network, addr string) (c net.Conn, err error) {
		socket, err = new(net.Dialer).DialContext(ctx, network, addr)
		return socket, err
	}
	const streams = 20
	for range streams {
		go func() {
			if resp, err := s.server.Client().Get(s.server.URL); err == nil {
				_ = resp.Body.Close()
			}
		}()
		<-s.started
	}
	_ = socket.Close()
	for range streams {
		<-s.ended
	}
	if n := s.refused.Load(); n != 0 {
		t.Errorf("%d connections are refused", n)
	}
}
