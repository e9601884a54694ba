package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"switchboard/broker/namespace"
	"switchboard/broker/session"
	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// answers returns a method that answers with v and err.
func answers(v any, err error) session.Method {
	return func(context.Context, session.Caller, json.RawMessage) (any, error) { return v, err }
}

// TestMethod checks what a method receives, and the reply.
func TestMethod(t *testing.T) {
	var got []string
	h := newHarness(t, session.Options{Methods: map[string]session.Method{
		"echo": func(ctx context.Context, c session.Caller, data json.RawMessage) (any, error) {
			_, ends := ctx.Deadline()
			got = append(got, fmt.Sprintln(c.Client, c.User, c.Address, c.Server, c.Generation > 0, ends, string(data)))
			return map[string]any{"data": data}, nil
		},
	}})
	e := h.expect("reply", "", "", `{"type":"request","ref":7,"method":"echo","data":{ "a": "<" }}`)
	if e.Ref != wire.RefOf(7) || string(e.Data) != `{"data":{"a":"<"}}` {
		t.Errorf("answered with %+v %s", e, e.Data)
	}
	h.expect("reply", "", "", `{"type":"request","ref":8,"method":"echo"}`)
	want := "phone  192.0.2.1:1 me true true "
	if len(got) != 2 || got[0] != want+"{\"a\":\"<\"}\n" || got[1] != want+"\n" {
		t.Errorf("received %q", got)
	}
}

// TestMethodAnswers checks the answer to each kind of result.
func TestMethodAnswers(t *testing.T) {
	refusal := state.Refuse(state.GroupFull, state.Details{Other: "seat/", N: 3, Max: 2, Fields: map[string]*state.Field{"seat/a": {ID: 5, Value: []byte("1")}}})
	full := wire.Errorf(wire.Full, "no seat")
	h := newHarness(t, session.Options{Methods: map[string]session.Method{
		"nothing":  answers(nil, nil),
		"raw":      answers(json.RawMessage("[ 1 ]"), nil),
		"bad":      answers(func() {}, nil),
		"refuse":   answers(1, wire.Errorf(wire.Locked, "ask the host")),
		"detailed": answers(nil, fmt.Errorf("join: %w", &wire.DetailedError{Err: full, Data: map[string]int{"max": 4}})),
		"opaque":   answers(nil, &wire.DetailedError{Err: full, Data: func() {}}),
		"broken":   answers(nil, errors.New("redis is away")),
		"change":   answers(nil, refusal),
		"channel":  answers(nil, fmt.Errorf("seat: %w", &session.ChannelError{Channel: "a", Err: refusal})),
		"closed":   answers(nil, &session.ChannelError{Channel: "closed", Err: refusal}),
	}, Access: session.Access{Namespaces: ruled(t, ownRule(), namespace.Rule{Name: "closed"})}})
	for method, want := range map[string]string{
		"nothing":  `{"type":"reply","ref":1,"data":null}`,
		"raw":      `{"type":"reply","ref":1,"data":[1]}`,
		"bad":      `{"type":"error","ref":1,"code":"unavailable","message":"the store`,
		"refuse":   `{"type":"error","ref":1,"code":"locked","message":"ask the host"}`,
		"detailed": `{"type":"error","ref":1,"data":{"max":4},"code":"full","message":"no seat"}`,
		"opaque":   `{"type":"error","ref":1,"code":"unavailable","message":"the store`,
		"broken":   `{"type":"error","ref":1,"code":"unavailable","message":"the store`,
		"change":   `,"group":"seat/","max":2}`,
		"channel":  `,"fields":{"seat/a":[5,1]},"group":"seat/","max":2}`,
		"closed":   `would have 3 fields, at most 2 are allowed","group":"seat/","max":2}`,
		"unknown":  `{"type":"error","ref":1,"code":"not_found","message":"method: there is no unknown"}`,
		"Bad":      `{"type":"error","ref":1,"code":"bad_request","message":"method: character 'B' at byte 0 of the name`,
	} {
		h.send(`{"type":"request","ref":1,"method":%q,"data":1}`, method)
		events := h.received()
		raw, err := json.Marshal(events)
		if err != nil || len(events) != 1 || !strings.Contains(string(raw), want) || strings.Contains(string(raw), `"fields"`) != strings.Contains(want, `"fields"`) {
			t.Errorf("%s: %s %v, want %s", method, raw, err, want)
		}
	}
	h.expect("error", "bad_request", "ref: missing", `{"type":"request","method":"nothing"}`)
	h.expect("error", "too_large", "data:", `{"type":"request","ref":1,"method":"nothing","data":"%s"}`, strings.Repeat("x", 65<<10))
}

// TestMethodRate checks that a call costs a request of the connection.
func TestMethodRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, refused := countRefusals(session.Options{Requests: session.Requests{Rate: 1}, Methods: map[string]session.Method{"a": answers(1, nil)}})
		h := newHarness(t, o)
		for range 4 {
			h.expect("reply", "", "", `{"type":"request","ref":1,"method":"a"}`)
		}
		h.expect("error", "rate_limited", "more than 1 requests a second", `{"type":"request","ref":1,"method":"a"}`)
		if refused["request_rate"] != 1 {
			t.Errorf("counted %v", refused)
		}
	})
}

// TestSlowMethod checks that a slow method delays only the other messages of its client, and that
// nothing is written after the end of the session.
func TestSlowMethod(t *testing.T) {
	started, goOn := make(chan struct{}), make(chan struct{})
	h := newHarness(t, session.Options{Methods: map[string]session.Method{
		"slow": func(context.Context, session.Caller, json.RawMessage) (any, error) {
			started <- struct{}{}
			<-goOn
			return 1, nil
		},
	}})
	const slow, publish = `{"type":"request","ref":1,"method":"slow"}`, `{"type":"publish","ref":2,"channel":"a","data":1}`
	other := h.connectDevice("tablet")
	h.onLoop(func() { receive(h.receiver, slow); receive(h.receiver, publish) })
	<-started
	h.onLoop(func() { receive(other.receiver, publish) })
	h.pool.Wait() // not of the methods
	h.onLoop(func() {})
	if events := other.received(); types(events) != "published" {
		t.Errorf("the other client receives %+v", events)
	}
	if events := h.received(); len(events) > 0 {
		t.Errorf("received %+v before the answer", events)
	}
	goOn <- struct{}{}
	h.settle()
	if events := h.received(); types(events) != "reply published" {
		t.Errorf("received %+v", events)
	}
	h.onLoop(func() { receive(h.receiver, slow) })
	<-started
	h.onLoop(h.receiver.Closed)
	goOn <- struct{}{}
	h.settle()
	if events := h.received(); len(events) > 0 {
		t.Errorf("received %+v after the end", events)
	}
}
