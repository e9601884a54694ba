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

type greeting struct{ Text string }

// callPair is a server with calls, and a caller that knows it.
func callPair(t *testing.T) (a, b *node) {
	a, b = newNode(t, "a", secret("between us")), newNode(t, "b", secret("between us"))
	b.HandleCall("greet", func(ctx context.Context, body json.RawMessage) (any, error) {
		var g greeting
		if err := json.Unmarshal(body, &g); err != nil {
			return nil, err
		}
		if _, ok := ctx.Deadline(); !ok {
			return nil, errors.New("without a deadline")
		}
		return greeting{"hello " + g.Text}, nil
	})
	b.HandleCall("fail", func(context.Context, json.RawMessage) (any, error) { return nil, errors.New("out of luck") })
	b.HandleCall("large", func(context.Context, json.RawMessage) (any, error) { return strings.Repeat("x", maxMessage), nil })
	b.HandleCall("wait", func(ctx context.Context, _ json.RawMessage) (any, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	a.start()
	b.start()
	a.knows(b)
	return a, b
}

func TestCall(t *testing.T) {
	a, _ := callPair(t)
	var out greeting
	if err := a.Call(t.Context(), "b", "greet", greeting{"you"}, &out); err != nil || out.Text != "hello you" {
		t.Errorf("%+v, %v", out, err)
	}
	if err := a.Call(t.Context(), "b", "greet", greeting{"you"}, nil); err != nil {
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
	for range maxCalls + 1 { // each gives its turn back
		if err := a.Call(t.Context(), "b", "greet", greeting{"you"}, nil); err != nil {
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

// TestCallDialsAtOnce: a call does not wait for the pause between two dials to a server that came
// back.
func TestCallDialsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Options{Self: func() string { return "b" }, Handle: func(Hint) {}})
		b.HandleCall("greet", func(context.Context, json.RawMessage) (any, error) { return "hello", nil })
		p := servePipe(t, b.Handler().ServeHTTP)
		var away atomic.Bool
		away.Store(true)
		a := New(Options{Self: func() string { return "a" }})
		a.client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if away.Load() {
				return nil, errors.New("away")
			}
			return p.dial(ctx, network, addr)
		}
		a.SetServers([]registry.Server{{ID: "b", Host: "b:1"}})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- a.Run(ctx) }()
		<-time.After(time.Minute) // the pauses are as long as they get
		synctest.Wait()
		if err := a.Call(t.Context(), "b", "greet", nil, nil); err == nil || !strings.Contains(err.Error(), "away") {
			t.Errorf("while it is away: %v", err)
		}
		synctest.Wait()
		away.Store(false)
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

// TestCallsAreBounded: what is given up is waited for, so the other end never has more calls than
// it allows.
func TestCallsAreBounded(t *testing.T) {
	a, b := newNode(t, "a"), newNode(t, "b")
	var under atomic.Int64
	b.HandleCall("wait", func(ctx context.Context, _ json.RawMessage) (any, error) {
		if under.Add(1) > maxCalls {
			t.Error("too many at once")
		}
		defer under.Add(-1)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	a.start()
	b.start()
	a.knows(b)
	a.await("peer link is up")
	c, err := a.link("b").callers.current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, giveUp := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	for range maxCalls {
		calls.Go(func() {
			if _, err := c.call(ctx, "wait", []byte("null")); !errors.Is(err, context.Canceled) {
				t.Errorf("given up: %v", err)
			}
		})
	}
	for len(c.turns) < maxCalls {
		runtime.Gosched()
	}
	giveUp()
	calls.Wait()
	if _, err := c.call(ctx, "wait", []byte("null")); !errors.Is(err, context.Canceled) || len(c.turns) != maxCalls {
		t.Errorf("one more: %v, %d wait for answers", err, len(c.turns))
	}
	b.stop()
	a.await("peer link is down")
	if len(c.turns) != 0 {
		t.Errorf("%d calls wait for answers of a link that ended", len(c.turns))
	}
}

// TestCallOfOlderVersion: a listener that knows no calls over links is not sent one, which would
// end the link.
func TestCallOfOlderVersion(t *testing.T) {
	a, b := newNode(t, "a"), newNode(t, "b")
	b.http.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.Handler().ServeHTTP(forgetful{w}, r)
	})
	a.start()
	b.start()
	a.knows(b)
	if err := a.Call(t.Context(), "b", "greet", nil, nil); !errors.Is(err, errNoCalls) {
		t.Error(err)
	}
	b.linked(a)
}

// forgetful leaves the header of the handshake out.
type forgetful struct{ http.ResponseWriter }

func (w forgetful) WriteHeader(status int) {
	w.Header().Del(headerPeer)
	w.ResponseWriter.WriteHeader(status)
}

func (w forgetful) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w forgetful) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(w.ResponseWriter).Hijack()
}
