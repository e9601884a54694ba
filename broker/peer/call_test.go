package peer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/registry"
)

type greetMessage struct{ Text string }

// callPair returns a server b that answers calls, and a server a with a link to it.
func callPair(t *testing.T) (a, b *node) {
	a, b = newNode(t, "a", withSecret("between us")), newNode(t, "b", withSecret("between us"))
	b.HandleCall("greet", func(ctx context.Context, body json.RawMessage) (any, error) {
		var g greetMessage
		if err := json.Unmarshal(body, &g); err != nil {
			return nil, err
		}
		if _, ok := ctx.Deadline(); !ok {
			return nil, errors.New("without a deadline")
		}
		return greetMessage{"hello " + g.Text}, nil
	})
	b.HandleCall("fail", func(context.Context, json.RawMessage) (any, error) { return nil, errors.New("out of luck") })
	b.HandleCall("large", func(context.Context, json.RawMessage) (any, error) { return strings.Repeat("x", maxMessage), nil })
	b.HandleCall("wait", func(ctx context.Context, _ json.RawMessage) (any, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	a.start()
	b.start()
	a.setServers(b)
	return a, b
}

func TestCall(t *testing.T) {
	a, _ := callPair(t)
	var out greetMessage
	if err := a.Call(t.Context(), "b", "greet", greetMessage{"you"}, &out); err != nil || out.Text != "hello you" {
		t.Errorf("%+v, %v", out, err)
	}
	if err := a.Call(t.Context(), "b", "greet", greetMessage{"you"}, nil); err != nil {
		t.Errorf("without out: %v", err)
	}
	for _, c := range []struct {
		name string
		in   any
		want string
	}{
		{"fail", nil, "call fail of server b: out of luck"},
		{"nothing", nil, `there is no call "nothing"`},
		{"greet", strings.Repeat("x", maxMessage), errTooLarge.Error()},
		{"greet", make(chan int), "unsupported type"},
		{"large", nil, errTooLarge.Error()},
	} {
		if err := a.Call(t.Context(), "b", c.name, c.in, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	for range maxCalls + 1 { // each call frees its slot
		if err := a.Call(t.Context(), "b", "greet", greetMessage{"you"}, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, server := range []string{"a", "c", ""} {
		if err := a.Call(t.Context(), server, "greet", nil, nil); !errors.Is(err, ErrUnknownServer) {
			t.Errorf("server %q: %v", server, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Call(ctx, "b", "wait", nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestCallDialsAtOnce checks that a call to a server whose link is down dials at once, without the
// redial delay.
func TestCallDialsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Options{Self: func() string { return "b" }, Handle: func(Hint) {}})
		b.HandleCall("greet", func(context.Context, json.RawMessage) (any, error) { return "hello", nil })
		p := servePipe(t, b.Handler().ServeHTTP)
		var down atomic.Bool
		down.Store(true)
		a := New(Options{Self: func() string { return "a" }})
		a.client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if down.Load() {
				return nil, errors.New("down")
			}
			return p.dial(ctx, network, addr)
		}
		a.SetServers([]registry.Server{{ID: "b", Host: "b:1"}})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- a.Run(ctx) }()
		<-time.After(time.Minute) // the redial delay has reached its maximum
		synctest.Wait()
		if err := a.Call(t.Context(), "b", "greet", nil, nil); err == nil || !strings.Contains(err.Error(), "down") {
			t.Errorf("while the server is down: %v", err)
		}
		synctest.Wait()
		down.Store(false)
		began := time.Now()
		if err := a.Call(t.Context(), "b", "greet", nil, nil); err != nil || time.Since(began) > 0 {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := a.Call(t.Context(), "b", "greet", nil, nil); !errors.Is(err, ErrUnknownServer) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// TestCallsAreBounded checks that a cancelled call keeps its slot until its answer arrives, so that
// the other end never has more than maxCalls.
func TestCallsAreBounded(t *testing.T) {
	a, b := newNode(t, "a"), newNode(t, "b")
	var running atomic.Int64
	b.HandleCall("wait", func(ctx context.Context, _ json.RawMessage) (any, error) {
		if running.Add(1) > maxCalls {
			t.Error("too many at once")
		}
		defer running.Add(-1)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	a.start()
	b.start()
	a.setServers(b)
	a.awaitLog("peer link is up")
	c, err := a.link("b").caller.await(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	for range maxCalls {
		calls.Go(func() {
			if _, err := c.call(ctx, "wait", []byte("null")); !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: %v", err)
			}
		})
	}
	for len(c.slots) < maxCalls {
		runtime.Gosched()
	}
	cancel()
	calls.Wait()
	if _, err := c.call(ctx, "wait", []byte("null")); !errors.Is(err, context.Canceled) || len(c.slots) != maxCalls {
		t.Errorf("one more: %v, %d wait for answers", err, len(c.slots))
	}
	b.stop()
	a.awaitLog("peer link is down")
	if len(c.slots) != 0 {
		t.Errorf("%d calls wait for answers of a link that ended", len(c.slots))
	}
}

// TestCallToOlderVersion checks that no call is sent to a version that does not accept calls over
// links. A call would end the link.
func TestCallToOlderVersion(t *testing.T) {
	a, b := newNode(t, "a"), newNode(t, "b")
	b.http.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.Handler().ServeHTTP(withoutPeerHeader{w}, r)
	})
	a.start()
	b.start()
	a.setServers(b)
	if err := a.Call(t.Context(), "b", "greet", nil, nil); !errors.Is(err, errCallsUnsupported) {
		t.Error(err)
	}
	b.awaitLink(a)
}

// withoutPeerHeader removes the header of the handshake from an answer.
type withoutPeerHeader struct{ http.ResponseWriter }

func (w withoutPeerHeader) WriteHeader(status int) {
	w.Header().Del(headerPeer)
	w.ResponseWriter.WriteHeader(status)
}

func (w withoutPeerHeader) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w withoutPeerHeader) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(w.ResponseWriter).Hijack()
}
