package session_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"switchboard/broker/namespace"
	"switchboard/broker/session"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/queue"
)

func TestSubscribeWithState(t *testing.T) {
	h := newStateHarness(t, session.Options{})
	h.backendSet("a", map[string]string{"$$h": "0", "x/1": "1", "x/2": "2", "y": "3"})
	plain, all, some := h.connectDevice("plain"), h.connectDevice("all"), h.connectDevice("some")
	plain.expect("subscribed", `{"type":"subscribe","channel":"a"}`)
	var followers [2]state.Follower
	events := all.expect("subscribed state", `{"type":"subscribe","channel":"a","state":true}`)
	if page := events[1]; !page.First || page.More || *page.ID < *events[0].ID || fieldsOf(t, page) != "x/1=1 x/2=2 y=3" {
		t.Errorf("the page is %+v, %s", page, fieldsOf(t, page))
	}
	follow(t, &followers[0], events)
	follow(t, &followers[1], some.expect("subscribed state", `{"type":"subscribe","channel":"a","state":"x/"}`))

	h.expect("published", "", "", `{"type":"publish","channel":"a","set":{"x/1":5,"y":6}}`)
	h.expect("published", "", "", `{"type":"publish","channel":"a","set":{"y":7}}`)
	h.backendSet("a", map[string]string{"$$h": "1"})
	h.expect("published", "", "", `{"type":"publish","channel":"a","data":1,"del":["x/2","y"]}`)
	if events := plain.received(); types(events) != "message" || string(events[0].Data) != "1" || !reflect.DeepEqual(events[0].StateEvent, &wire.StateEvent{By: "phone"}) {
		t.Errorf("without state: %+v", events)
	}
	events = all.received()
	if types(events) != "message message message" || events[0].By != "phone" {
		t.Errorf("with state: %+v", events)
	}
	follow(t, &followers[0], events)
	events = some.received()
	if types(events) != "message message" {
		t.Errorf("with a prefix: %+v", events)
	}
	follow(t, &followers[1], events)
	if got, want := show(followers[0].Map().Fields), "x/1=5"; got != want {
		t.Errorf("followed %s, want %s", got, want)
	}
	if got, want := show(followers[1].Map().Fields), "x/1=5"; got != want {
		t.Errorf("followed %s with a prefix, want %s", got, want)
	}
}

// TestHeldState: a client that holds the state at its position receives no pages if it receives the
// messages since then.
func TestHeldState(t *testing.T) {
	h := newStateHarness(t, session.Options{})
	h.backendSet("a", map[string]string{"x": "1"})
	watcher := h.connectDevice("watcher")
	watcher.expect("subscribed state", `{"type":"subscribe","channel":"a","state":true}`)
	h.expect("published", "", "", `{"type":"publish","channel":"a","set":{"x":2}}`)
	position := *watcher.received()[0].ID
	h.expect("published", "", "", `{"type":"publish","channel":"a","set":{"x":3}}`)
	for request, want := range map[string]string{
		`"after":%d,"held":true`: "subscribed message",
		`"after":%d`:             "subscribed state message",
	} {
		d := h.connectDevice("again")
		events := d.expect(want, `{"type":"subscribe","channel":"a","state":true,`+request+`}`, position)
		if last := events[len(events)-1]; string(last.Set["x"]) != "3" || !*events[0].Recovered {
			t.Errorf("got %+v", events)
		}
		d.end()
	}
	d := h.connectDevice("again")
	d.expect("subscribed state", `{"type":"subscribe","channel":"a","state":true,"held":true}`)
	d.end()
	events := h.connectDevice("ahead").expect("subscribed state", `{"type":"subscribe","channel":"a","state":true,"held":true,"after":%d}`, position+1<<40)
	if *events[0].Recovered {
		t.Errorf("recovered from an unknown position: %+v", events[0])
	}
}

// TestResubscribeWithState: the state can be added to a subscription, and its prefix changed.
func TestResubscribeWithState(t *testing.T) {
	h := newStateHarness(t, session.Options{})
	h.backendSet("a", map[string]string{"x": "1", "y": "2"})
	d := h.connectDevice("watcher")
	d.expect("subscribed", `{"type":"subscribe","channel":"a"}`)
	for _, c := range []struct{ request, want, fields string }{
		{`"state":true`, "subscribed state", "x=1 y=2"},
		{`"state":true,"held":true`, "subscribed", ""},
		{`"state":"y","held":true`, "subscribed state", "y=2"},
		{`"state":"y"`, "subscribed state", "y=2"},
		{`"presence":false`, "subscribed", ""},
	} {
		events := d.expect(c.want, `{"type":"subscribe","channel":"a",%s}`, c.request)
		if events[0].Recovered != nil || c.fields != "" && fieldsOf(t, events[1]) != c.fields {
			t.Errorf("%s: %+v", c.request, events)
		}
	}
	h.expect("published", "", "", `{"type":"publish","channel":"a","set":{"x":3}}`)
	h.expect("published", "", "", `{"type":"publish","channel":"a","set":{"y":4}}`)
	if events := d.received(); types(events) != "message" || string(events[0].Set["y"]) != "4" {
		t.Errorf("received %+v", events)
	}
}

// TestTooManyPrefixes: a subscribe with one prefix too many is refused, also if it is repeated.
func TestTooManyPrefixes(t *testing.T) {
	h := newStateHarness(t, session.Options{Limits: session.Limits{Channels: 2}})
	var devices []*device
	refused := 0
	for i := range 300 {
		d := h.connectDevice(fmt.Sprint("d", i))
		d.send(`{"type":"subscribe","channel":"b"}`)
		d.received()
		d.send(`{"type":"subscribe","channel":"a","state":"p%d"}`, i)
		if events := d.received(); types(events) != "subscribed state" {
			if refused++; types(events) != "error:rate_limited" || !strings.Contains(events[0].Message, "different prefixes") {
				t.Fatalf("got %+v", events)
			}
		}
		devices = append(devices, d)
	}
	last := devices[len(devices)-1]
	if refused == 0 || refused > 100 {
		t.Fatalf("%d were refused", refused)
	}
	last.expect("subscribed state", `{"type":"subscribe","channel":"a","state":true}`) // for which there is always room
	last.expect("error:rate_limited", `{"type":"subscribe","channel":"a","state":"another"}`)
	devices[0].expect("unsubscribed", `{"type":"unsubscribe","channel":"a"}`)
	last.expect("subscribed state", `{"type":"subscribe","channel":"a","state":"another"}`)
}

// TestBy: with by, a namespace shows the value of a field in place of the client, to all that may
// read the state. Without the field, it shows nothing.
func TestBy(t *testing.T) {
	anyone := namespace.Anyone
	rule := namespace.Rule{
		Name: "*", Subscribe: anyone, Publish: anyone, State: anyone, By: "name",
		Fields: []namespace.FieldRule{{Pattern: "*", Write: anyone}},
	}
	h := newStateHarness(t, session.Options{Access: session.Access{Namespaces: ruled(t, rule)}})
	d := h.connectDevice("watcher")
	d.expect("subscribed state", `{"type":"subscribe","channel":"a","state":true}`)
	for _, c := range []struct{ change, want string }{
		{`"set":{"x":1}`, ""}, {`"set":{"name":"Amy"}`, "Amy"}, {`"set":{"x":2},"data":2`, "Amy"}, {`"del":["name"]`, ""},
	} {
		h.expect("published", "", "", `{"type":"publish","channel":"a",%s}`, c.change)
		h.settle()
		if events := d.received(); types(events) != "message" || events[0].By != c.want {
			t.Errorf("%s: received %+v, want by %q", c.change, events, c.want)
		}
	}
}

// TestRecheckOfState: a client that may no longer read the state loses its subscription, and one
// that may no longer see the presence does not see who published.
func TestRecheckOfState(t *testing.T) {
	var set atomic.Pointer[namespace.Set]
	anyone := namespace.Anyone
	rule := namespace.Rule{Name: "*", Subscribe: anyone, Publish: anyone, State: anyone, Presence: anyone, Fields: []namespace.FieldRule{{Pattern: "*", Write: anyone}}}
	set.Store(ruled(t, rule)())
	h := newStateHarness(t, session.Options{Access: session.Access{Namespaces: set.Load}})
	d, plain := h.connectDevice("watcher"), h.connectDevice("plain")
	d.expect("subscribed state", `{"type":"subscribe","channel":"a","state":true}`)
	plain.expect("subscribed", `{"type":"subscribe","channel":"a"}`)
	by := func() string {
		h.expect("published", "", "", `{"type":"publish","channel":"a","set":{"x":1},"data":1}`)
		h.settle()
		events := d.received()
		if types(events) != "message" {
			t.Fatalf("received %+v", events)
		}
		return events[0].By
	}
	if by() != "phone" {
		t.Error("the publisher is not shown")
	}
	rule.Presence = namespace.BackendOnly
	set.Store(ruled(t, rule)())
	h.Recheck()
	if by() != "" {
		t.Error("the publisher is shown without the presence right")
	}
	rule.State = namespace.BackendOnly
	set.Store(ruled(t, rule)())
	h.Recheck()
	if events := d.received(); types(events) != "unsubscribed:forbidden" || !strings.Contains(events[0].Message, "state") {
		t.Errorf("received %+v", events)
	}
	if events := plain.received(); types(events) != "message message" {
		t.Errorf("the other subscriber received %+v", events)
	}
	h.wantClosed("")
}

// TestSubscribeStoreFailure: without the store a subscribe with state is refused, and nothing of it
// stays.
func TestSubscribeStoreFailure(t *testing.T) {
	broken := &unreadableStates{}
	h := newHarnessOn(t, session.Options{}, func(q Queue) Queue { broken.Queue = q; return broken })
	broken.failing.Store(true)
	h.expect("error", "unavailable", "", `{"type":"subscribe","channel":"a","state":true}`)
	h.expect("error", "unavailable", "", `{"type":"state","ref":1,"channel":"a"}`)
	if session.HasStateUse(h.receiver) || h.hub.SubscriberCount("a") != 0 {
		t.Error("a part of the subscription stays")
	}
	h.expect("subscribed", "", "", `{"type":"subscribe","channel":"a"}`)
	h.expect("subscribed", "", "", `{"type":"subscribe","channel":"a","state":true}`) // the pages follow when the store is back
	if events := h.received(); len(events) > 0 {
		t.Errorf("received %+v", events)
	}
	broken.failing.Store(false)
	h.tick(1)
	if events := h.received(); types(events) != "state" {
		t.Errorf("received %+v, want the pages", events)
	}
}

// unreadableStates is a queue whose ReadStates can fail.
type unreadableStates struct {
	Queue
	failing atomic.Bool
}

// ReadStates implements session.Queue.
func (q *unreadableStates) ReadStates(ctx context.Context, reads []queue.StateRead) []queue.Outcome[queue.StatePage] {
	if !q.failing.Load() {
		return q.Queue.ReadStates(ctx, reads)
	}
	outcomes := make([]queue.Outcome[queue.StatePage], len(reads))
	for i := range outcomes {
		outcomes[i].Err = errStore
	}
	return outcomes
}
