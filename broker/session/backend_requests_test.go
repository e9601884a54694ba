package session_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"switchboard/broker/namespace"
	"switchboard/broker/session"
	"switchboard/broker/work"
	"switchboard/internal/wire"
)

// TestBackendRequests checks that requests go to the backend's URL, that other messages do not wait
// for it, and how many may wait.
func TestBackendRequests(t *testing.T) {
	pool := work.NewOn(64, func(worker func()) { go worker() })
	bodies, goOn := make(chan string, 64), make(chan error)
	o, refused := countRefusals(session.Options{Requests: session.Requests{
		From: namespace.Anyone, Pool: pool,
		Ask: func(_ context.Context, request []byte, since time.Time) (json.RawMessage, error) {
			if since.IsZero() {
				t.Error("no time")
			}
			bodies <- string(request)
			return json.RawMessage(`{"n":1}`), <-goOn
		},
	}})
	h := newHarness(t, o)
	const request = `{"type":"request","ref":1,"data":{ "q": 1 }}`
	h.send(request)
	var body map[string]any
	if err := json.Unmarshal([]byte(<-bodies), &body); err != nil || body["client"] != "phone" || body["server"] != "me" || body["ref"] != 1.0 {
		t.Errorf("sent %v, %v", body, err)
	}
	h.expect("pong", "", "", `{"type":"ping"}`)
	h.expect("published", "", "", `{"type":"publish","channel":"a","data":1}`)
	for range 15 {
		h.send(request)
	}
	h.expect("error", "rate_limited", "16 requests of the connection wait", request)
	if refused["requests"] != 1 {
		t.Errorf("counted %v", refused)
	}
	for i := range 16 {
		if i == 0 {
			goOn <- &wire.DetailedError{Err: wire.Errorf("sold_out", "sorry"), Data: json.RawMessage(`{"left":0}`)}
		} else {
			goOn <- nil
		}
	}
	pool.Wait()
	h.settle()
	errors := 0
	for _, e := range h.received() {
		switch {
		case e.Type == "error" && e.Code == "sold_out" && string(e.Data) == `{"left":0}`:
			errors++
		case e.Type != "reply" || string(e.Data) != `{"n":1}` || e.Ref.Value != 1:
			t.Errorf("received %+v", e)
		}
	}
	if errors != 1 {
		t.Errorf("%d errors", errors)
	}
	h.send(request)
	h.onLoop(h.receiver.Closed)
	goOn <- nil
	pool.Wait()
	h.settle()
	if events := h.received(); len(events) > 0 {
		t.Errorf("received %+v after the end", events)
	}
}
