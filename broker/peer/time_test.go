package peer

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"switchboard/registry"
)

// pipeListener is a listener and its dialer without a network, for tests with synctest.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p pipeListener) Close() error   { return nil }
func (p pipeListener) Addr() net.Addr { return &net.UnixAddr{} }

func (p pipeListener) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	p.conns <- far
	return near, nil
}

func TestSilentLink(t *testing.T) {
	for name, sendsBatch := range map[string]bool{"from the beginning": false, "after a batch": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { silentLink(t, sendsBatch) })
		})
	}
}

func silentLink(t *testing.T, sendsBatch bool) {
	l := New(Options{Self: func() string { return "b" }, Handle: func(Hint) {}})
	conn, ended := dialPipe(t, l, "a")
	if sendsBatch {
		<-time.After(3 * time.Second)
		if err := conn.Write(t.Context(), websocket.MessageBinary, []byte{0}); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Wait()
	lastBatch := time.Now()
	first, _ := l.Doubts()
	second, _ := l.Doubts()
	if got := len(first) > 0; got != sendsBatch || len(second) > 0 {
		t.Error("the first batch of an older server is not reported as a loss exactly once")
	}
	l.SetServers([]registry.Server{{ID: "a"}})
	reports := 0 // until 9.5 s: at 10 s the link ends, which is another loss
	for range 19 {
		<-time.After(500 * time.Millisecond)
		if len(l.in.doubts()) > 0 {
			reports++
		}
	}
	<-ended
	if silent := time.Since(lastBatch); silent != silenceTimeout {
		t.Errorf("closed after %v", silent)
	}
	want := 9 // after 1.5, 2.5, …, 9.5 s: the first batch of a link comes at once
	if sendsBatch {
		want = 5 // after 5.5, 6.5, …, 9.5 s
	}
	if reports != want {
		t.Errorf("Doubts returned the server %d times, want %d", reports, want)
	}
}

// TestHeartbeats checks that an idle link beats every 2 s, and four times a second for 5 s after a
// hint, also a dropped one.
func TestHeartbeats(t *testing.T) {
	for _, fault := range []Fault{"", Drop} {
		t.Run("fault "+string(fault), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { heartbeats(t, fault) })
		})
	}
}

func heartbeats(t *testing.T, fault Fault) {
	l := New(Options{Self: func() string { return "a" }, Fault: fault})
	var count, last atomic.Uint64
	p := servePipe(t, func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.CloseNow()
		for {
			_, batch, err := conn.Read(r.Context())
			if err != nil {
				return
			}
			number, hints, _, err := decodeBatch(batch, nil, 0)
			if err != nil {
				t.Error(err)
			}
			count.Add(1)
			last.Store(number + uint64(len(hints)))
		}
	})
	l.client.Transport.(*http.Transport).DialContext = p.dial
	l.SetServers([]registry.Server{{ID: "b", Host: "b:1"}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- l.Run(ctx) }()
	batches := func(d time.Duration) uint64 {
		before := count.Load()
		<-time.After(d)
		synctest.Wait()
		return count.Load() - before
	}
	batches(5 * time.Second)
	if n := batches(20 * time.Second); n != 10 {
		t.Errorf("%d batches in 20 s on an idle link", n)
	}
	l.Send("b", Hint{Kind: Channel, Name: "room"})
	if batches(heartbeat * 3 / 2); last.Load() != 1 {
		t.Errorf("the receiver expects number %d, want 1", last.Load())
	}
	if n := batches(4 * time.Second); n < 15 || n > 16 {
		t.Errorf("%d batches in 4 s after a hint", n)
	}
	batches(5 * time.Second)
	if n := batches(20 * time.Second); n != 10 {
		t.Errorf("%d batches in 20 s on a link that is idle again", n)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestStuckReceiver checks that hints to a server that reads nothing fill a bounded queue. Send
// does not block, the link is closed, and every hint is counted as sent or missed.
func TestStuckReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent, missed atomic.Int64
		l := New(Options{Self: func() string { return "a" }, Metrics: Metrics{
			Sent:   func(n int) { sent.Add(int64(n)) },
			Missed: func(n int) { missed.Add(int64(n)) },
		}})
		closeConn := make(chan struct{})
		p := servePipe(t, func(w http.ResponseWriter, r *http.Request) {
			conn, err := websocket.Accept(w, r, nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.CloseNow()
			<-closeConn
		})
		l.client.Transport.(*http.Transport).DialContext = p.dial
		l.SetServers([]registry.Server{{ID: "b", Host: "b:1"}})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- l.Run(ctx) }()
		synctest.Wait() // until it writes the first batch
		const n = maxQueued + 1000
		for range n {
			l.Send("b", Hint{Kind: Channel, Name: "room"})
		}
		if missed.Load() != 1000 {
			t.Errorf("%d of %d did not fit", missed.Load(), n)
		}
		<-time.After(writeTimeout)
		synctest.Wait()
		if sent.Load() != 0 || missed.Load() != n {
			t.Errorf("%d sent, %d missed of %d", sent.Load(), missed.Load(), n)
		}
		close(closeConn)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// dialPipe dials l as the server from, through pipes. ended is closed when the link ends.
func dialPipe(t *testing.T, l *Links, from string) (conn *websocket.Conn, ended chan struct{}) {
	ended = make(chan struct{})
	p := servePipe(t, func(w http.ResponseWriter, r *http.Request) {
		l.Handler().ServeHTTP(w, r)
		close(ended)
	})
	conn, _, err := websocket.Dial(t.Context(), "ws://b/peer/link?from="+from,
		&websocket.DialOptions{HTTPClient: &http.Client{Transport: &http.Transport{DialContext: p.dial}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.CloseNow() })
	return conn, ended
}

// servePipe serves HTTP over pipes until the test ends.
func servePipe(t *testing.T, handler http.HandlerFunc) pipeListener {
	p := pipeListener{make(chan net.Conn), make(chan struct{})}
	server := &http.Server{Handler: handler}
	served := make(chan error)
	go func() { served <- server.Serve(p) }()
	t.Cleanup(func() {
		close(p.done)
		if err := <-served; !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	return p
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
			return nil, errors.New("connection refused")
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
