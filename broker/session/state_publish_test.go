package session_test

import (
	"strings"
	"testing"

	"switchboard/broker/fields"
	"switchboard/broker/namespace"
	"switchboard/broker/session"
)

func TestPublishChange(t *testing.T) {
	h := newStateHarness(t, session.Options{})
	e := h.expect("published", "", "", `{"type":"publish","channel":"a","ref":1,"set":{"x":{"n": 1}},"add":{"n":3,"m":{"by":-1}}}`)
	if *e.ID == 0 || e.Ref.Value != 1 || string(e.Fields) != `{"m":-1,"n":3}` {
		t.Errorf("published %+v, %s", e, e.Fields)
	}
	h.wantFields("a", `m=-1 n=3 x={"n":1}`)
	e = h.expect("published", "", "", `{"type":"publish","channel":"a","data":1,"del":["m"],"if":{"x":%d}}`, *e.ID)
	if e.StateEvent != nil {
		t.Errorf("published %+v", e.StateEvent)
	}
	h.wantFields("a", `n=3 x={"n":1}`)

	e = h.expect("error", "conflict", "field x", `{"type":"publish","channel":"a","set":{"x":2},"if":{"x":1,"y":true}}`)
	if got := fieldsOf(t, e); got != `x={"n":1} y=absent` {
		t.Errorf("the refusal shows %s", got)
	}
	e = h.expect("error", "limit", "field n", `{"type":"publish","channel":"a","add":{"n":{"by":1,"max":3}}}`)
	if got := fieldsOf(t, e); got != `n=3` {
		t.Errorf("the refusal shows %s", got)
	}
	h.expect("error", "not_found", "field y", `{"type":"publish","channel":"a","touch":["y"]}`)
	h.expect("error", "bad_request", "field x: it appears twice", `{"type":"publish","channel":"a","set":{"x":2},"del":["x"]}`)
	h.expect("error", "forbidden", "field $x", `{"type":"publish","channel":"a","set":{"$x":2}}`)
	h.expect("error", "bad_request", "neither data nor a field", `{"type":"publish","channel":"a","ttl":2}`)
	h.expect("error", "bad_request", "channel", `{"type":"publish","channel":"a b","set":{"x":2}}`)
	h.expect("error", "forbidden", "system", `{"type":"publish","channel":"$all","set":{"x":2}}`)
	h.wantFields("a", `n=3 x={"n":1}`)
}

// TestPublishRights: data needs the right to publish, fields need what their rule says, and only a
// client that may read the state sees it in a refusal.
func TestPublishRights(t *testing.T) {
	field := namespace.FieldRule{Pattern: "*", Write: namespace.Anyone, Max: 0}
	h := newStateHarness(t, session.Options{Access: session.Access{Namespaces: ruled(t,
		namespace.Rule{Name: "fields:*", Subscribe: namespace.Anyone, State: namespace.Anyone, Fields: []namespace.FieldRule{field}},
		namespace.Rule{Name: "data:*", Publish: namespace.Anyone},
		namespace.Rule{Name: "blind:*", Publish: namespace.Anyone, Fields: []namespace.FieldRule{{Pattern: "seat/*", Write: namespace.Anyone, Max: 1}}},
	)}})
	h.expect("published", "", "", `{"type":"publish","channel":"fields:1","set":{"x":1}}`)
	h.expect("error", "forbidden", "not allowed to publish", `{"type":"publish","channel":"fields:1","set":{"x":1},"data":1}`)
	h.expect("published", "", "", `{"type":"publish","channel":"data:1","data":1}`)
	h.expect("error", "forbidden", "field x", `{"type":"publish","channel":"data:1","set":{"x":1},"data":1}`)
	h.expect("published", "", "", `{"type":"publish","channel":"blind:1","set":{"seat/1":1}}`)
	h.expect("error", "forbidden", "right to read the state", `{"type":"publish","channel":"blind:1","set":{"seat/1":1},"if":{"seat/1":0}}`)
	e := h.expect("error", "full", "group seat/", `{"type":"publish","channel":"blind:1","set":{"seat/2":1}}`)
	if e.Fields != nil || e.Group != "seat/" || e.Max == nil || *e.Max != 1 {
		t.Errorf("refused with %+v", e.StateEvent)
	}
	// A subscriber sees what its prefix selects.
	h.expect("subscribed", "", "", `{"type":"subscribe","channel":"fields:1","state":"y"}`)
	e = h.expect("error", "conflict", "", `{"type":"publish","channel":"fields:1","set":{"z":1},"if":{"x":0,"y":true}}`)
	if got := fieldsOf(t, e); got != "y=absent" {
		t.Errorf("the refusal shows %s", got)
	}
}

// TestPublishKeys: the keys of different clients are different, and so are those of a client
// without a user.
func TestPublishKeys(t *testing.T) {
	h := newStateHarness(t, session.Options{})
	first := h.expect("published", "", "", `{"type":"publish","channel":"a","key":"k","add":{"n":1}}`)
	again := h.expect("published", "", "", `{"type":"publish","channel":"a","key":"k","add":{"n":1}}`)
	if *again.ID != *first.ID || string(again.Fields) != `{"n":1}` {
		t.Errorf("repeated with %d %s, first %d", *again.ID, again.Fields, *first.ID)
	}
	other := h.connectDevice("tablet")
	other.expect("published", `{"type":"publish","channel":"a","key":"k","add":{"n":1}}`)
	h.wantFields("a", "n=2")
	h.expect("published", "", "", `{"type":"publish","channel":"a","key":"data","data":1}`)
	before := h.expect("published", "", "", `{"type":"publish","channel":"a","key":"data","data":1}`)
	if e := h.expect("published", "", "", `{"type":"publish","channel":"a","key":"other","data":1}`); *e.ID == *before.ID {
		t.Error("another key is a duplicate")
	}
	h.expect("error", "bad_request", "key", `{"type":"publish","channel":"a","key":"a b","data":1}`)
	h.expect("error", "bad_request", "key", `{"type":"publish","channel":"a","key":"a b","set":{"x":1}}`)
}

// TestPublishLimits: each field and each condition counts as a message. The size of a publish is
// limited as a whole.
func TestPublishLimits(t *testing.T) {
	o, refused := countRefusals(session.Options{Limits: session.Limits{
		Message: 1000, MessageRate: 2, StateLimits: fields.StateLimits{Operations: 9, FieldBytes: 700},
	}})
	h := newStateHarness(t, o)
	h.expect("error", "too_large", "at most 9", `{"type":"publish","channel":"a","del":["1","2","3","4","5","6","7","8","9","10"]}`)
	if h.expect("error", "rate_limited", "", `{"type":"publish","channel":"a","del":["1"]}`); refused["message_rate"] != 1 {
		t.Errorf("counted %v", refused)
	}
	o, refused = countRefusals(session.Options{Limits: session.Limits{MessageRate: 2}})
	h = newStateHarness(t, o)
	h.expect("published", "", "", `{"type":"publish","channel":"a","set":{"x":1},"if":{"1":0,"2":0,"3":0,"4":0,"5":0,"6":0,"7":0}}`)
	if h.expect("error", "rate_limited", "", `{"type":"publish","channel":"a","set":{"x":1}}`); refused["message_rate"] != 1 {
		t.Errorf("after seven conditions: counted %v", refused)
	}
	o, refused = countRefusals(session.Options{Limits: session.Limits{MessageRate: 4}})
	h = newStateHarness(t, o)
	h.backendSet("a", map[string]string{"x": `"` + strings.Repeat("x", 30_000) + `"`})
	h.expect("error", "conflict", "", `{"type":"publish","channel":"a","data":1,"if":{"x":0}}`)
	if h.expect("error", "rate_limited", "", `{"type":"publish","channel":"a","data":1}`); refused["message_rate"] != 1 {
		t.Errorf("after an error of 30 KB: counted %v", refused)
	}
	h = newStateHarness(t, session.Options{Limits: session.Limits{Message: 1000, StateLimits: fields.StateLimits{FieldBytes: 700}}})
	long := strings.Repeat("x", 600)
	h.expect("error", "too_large", "at most 1000", `{"type":"publish","channel":"a","set":{"x":"%s","y":"%s"}}`, long, long)
	h.expect("error", "too_large", "at most 700", `{"type":"publish","channel":"a","set":{"x":"%s%s"}}`, long, long)
	h.expect("published", "", "", `{"type":"publish","channel":"a","set":{"x":"%s"}}`, long)
}
