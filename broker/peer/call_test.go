package peer

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

type greeting struct{ Text string }

// callee is a server with calls, and a caller that knows it.
func callee(t *testing.T) (a, b *node) {
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
	b.HandleCall("large", func(context.Context, json.RawMessage) (any, error) { return strings.Repeat("x", maxCallBody), nil })
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
	a, _ := callee(t)
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
		{"fail", nil, "call fail of server b: 500 Internal Server Error: out of luck"},
		{"nothing", nil, "404"},
		{"greet", strings.Repeat("x", maxCallBody), "413"},
		{"greet", make(chan int), "unsupported type"},
		{"large", nil, errTooLarge.Error()},
	} {
		if err := a.Call(t.Context(), "b", c.name, c.in, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
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

func TestCallAnswerTooLarge(t *testing.T) {
	a := newNode(t, "a").start()
	big := &node{t: t, host: "", Links: New(Options{Self: func() string { return "big" }})}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write(make([]byte, maxCallBody+1))
	}))
	defer server.Close()
	big.host = server.Listener.Addr().String()
	a.knows(big)
	if err := a.Call(t.Context(), "big", "any", nil, nil); !errors.Is(err, errTooLarge) {
		t.Error(err)
	}
}

func TestCallNeedsJSONType(t *testing.T) {
	_, b := callee(t)
	r := httptest.NewRequest(http.MethodPost, "/peer/call/greet", strings.NewReader(`{}`))
	b.authorize(r.Header)
	r.Header.Set("Content-Type", "text/plain")
	w := httptest.NewRecorder()
	if b.Handler().ServeHTTP(w, r); w.Code != http.StatusUnsupportedMediaType {
		t.Errorf("status %d: a web page could call", w.Code)
	}
}
