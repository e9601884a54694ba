package session_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"switchboard/broker/namespace"
	"switchboard/broker/session"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// newLargeState returns a harness whose channel a has a state of about n pages.
func newLargeState(t *testing.T, pages int) *harness {
	h := newStateHarness(t, session.Options{})
	for page := range pages {
		fields := make(map[string]string)
		for i := range 4 {
			fields[fmt.Sprintf("p%02d/%d", page, i)] = string(large(8000))
		}
		h.backendSet("a", fields)
	}
	return h
}

// TestPagesDuringBacklog: pages are written as the socket takes them, and messages after them.
func TestPagesDuringBacklog(t *testing.T) {
	h := newLargeState(t, 5)
	d := h.connectDevice("watcher")
	d.setFull(true)
	var f state.Follower
	events := d.expect("subscribed state", `{"type":"subscribe","channel":"a","state":true}`)
	follow(t, &f, events)
	series := *events[1].ID
	h.expect("published", "", "", `{"type":"publish","channel":"a","set":{"p00/1":1,"new":2},"del":["p04/1"]}`)
	h.tick(2) // the hub resumes subscribers that lag, but not this one
	h.hub.Tick()
	h.settle()
	if events := d.received(); len(events) > 0 {
		t.Fatalf("written to a full socket: %v", types(events))
	}
	for page := 2; page <= 5; page++ {
		d.drain(true)
		events := d.received()
		if types(events) != "state" || *events[0].ID != series || events[0].First || events[0].More != (page < 5) {
			t.Fatalf("page %d: %v", page, types(events))
		}
		follow(t, &f, events)
	}
	d.drain(false)
	events = d.received()
	if types(events) != "message" {
		t.Fatalf("after the pages: %v", types(events))
	}
	follow(t, &f, events)
	h.wantFollowed("a", &f)
}

// TestEndDuringPages ends the subscription, or the connection, while pages are left.
func TestEndDuringPages(t *testing.T) {
	h := newLargeState(t, 4)
	d := h.connectDevice("watcher")
	d.setFull(true)
	d.expect("subscribed state", `{"type":"subscribe","channel":"a","state":true}`)
	d.send(`{"type":"unsubscribe","channel":"a"}`) // waits for the socket
	d.send(`{"type":"subscribe","channel":"b","state":true}`)
	d.drain(false)
	events := d.received()
	if types(events) != "state state state unsubscribed subscribed state" {
		t.Errorf("received %v", types(events))
	}
	d.setFull(true)
	d.expect("subscribed", `{"type":"subscribe","channel":"a","state":true}`) // the pages are ready, so nothing is held back
	d.end()
	h.onLoop(func() {
		if session.HasStateUse(d.receiver) {
			t.Error("the session still has pages")
		}
	})
	if n := h.hub.SubscriberCount("a"); n != 0 {
		t.Errorf("%d subscribers are left", n)
	}
}

// TestHeldPagesAreCounted: the pages that a client has yet to read count until it has read them, or
// its subscription or its connection ends.
func TestHeldPagesAreCounted(t *testing.T) {
	for name, release := range map[string]func(d *device){
		"read":         func(d *device) { d.drain(false) },
		"unsubscribed": func(d *device) { d.setFull(false); d.send(unsubscribeA) },
		"closed":       (*device).end,
	} {
		t.Run(name, func(t *testing.T) {
			h := newLargeState(t, 4)
			d := h.connectDevice("watcher")
			d.setFull(true)
			d.expect("subscribed state", subscribeA)
			for range 3 { // the view drops the pages, and has only the fields
				h.snapshots.Tick()
			}
			held := h.snapshots.Bytes()
			release(d)
			if n := held - h.snapshots.Bytes(); n < 100_000 {
				t.Errorf("%d bytes are released, of %d", n, held)
			}
		})
	}
}

// TestForcedEndDuringPages: access rules end a subscription whose pages are not written.
func TestForcedEndDuringPages(t *testing.T) {
	var set atomic.Pointer[namespace.Set]
	set.Store(namespace.Open())
	h := newStateHarness(t, session.Options{Access: session.Access{Namespaces: set.Load}})
	h.backendSet("a", map[string]string{"x": string(large(20_000)), "y": string(large(20_000))})
	d := h.connectDevice("watcher")
	d.setFull(true)
	d.expect("subscribed state", `{"type":"subscribe","channel":"a","state":true}`)
	set.Store(ruled(t, namespace.Rule{Name: "none"})())
	h.Recheck()
	d.drain(false)
	if got := types(d.received()); got != "unsubscribed:forbidden" {
		t.Errorf("received %s", got)
	}
}

// TestGapSendsNewPages: a client whose position is trimmed receives a gap and then new pages.
func TestGapSendsNewPages(t *testing.T) {
	h := newLargeState(t, 2)
	d := h.connectDevice("watcher")
	var f state.Follower
	follow(t, &f, d.expect("subscribed state state", `{"type":"subscribe","channel":"a","state":true}`))
	d.setFull(true)
	h.expect("published", "", "", `{"type":"publish","channel":"a","set":{"n":0}}`)
	h.trim("a", 400)
	d.drain(false)
	events := d.received()
	if types(events) != "message gap state state message" {
		t.Fatalf("received %v", types(events))
	}
	follow(t, &f, events)
	h.wantFollowed("a", &f)
	h.expect("published", "", "", `{"type":"publish","channel":"a","set":{"last":1}}`)
	follow(t, &f, d.received())
	h.wantFollowed("a", &f)
}

// trim makes the channel forget its messages: it stores n messages, of which it keeps one.
func (h *harness) trim(channel string, n int) {
	h.t.Helper()
	for i := range n {
		u := &state.Update{Writer: state.BackendHolder, Ops: []state.Op{{Field: "n", Kind: state.Set, Value: fmt.Appendf(nil, "%d", i)}}}
		a, err := h.queue.AppendChannel(h.t.Context(), queue.ChannelPush{Channel: channel, Update: u, Cap: 1})
		if err != nil {
			h.t.Fatal(err)
		}
		h.hint(channel, a)
	}
	h.settle()
}

// TestOvertakenPages: a client that is too slow for two series of pages in a row is closed.
func TestOvertakenPages(t *testing.T) {
	h := newLargeState(t, 3)
	d := h.connectDevice("watcher")
	d.setFull(true)
	d.expect("subscribed state", `{"type":"subscribe","channel":"a","state":true}`)
	h.trim("a", 400)
	var got []string
	for range 20 {
		d.drain(true)
		if events := d.received(); len(events) > 0 {
			got = append(got, types(events))
		}
		h.trim("a", 400)
	}
	if got, want := strings.Join(got, " "), "state state gap state state state gap"; got != want {
		t.Errorf("received %s, want %s", got, want)
	}
	h.onLoop(func() {
		if d.sock.closed != wire.CloseSlow {
			t.Errorf("closed as %q", d.sock.closed)
		}
	})
}

// TestPagesAfterEachLoss: a failover left several loss markers in a row. A client whose position is
// before them receives each gap with new pages, and stays connected.
func TestPagesAfterEachLoss(t *testing.T) {
	h := newLargeState(t, 1)
	r, err := h.queue.ReadChannel(t.Context(), "a", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	lost := r.Last
	for range 3 {
		m, err := h.queue.ConfirmChannel(t.Context(), "a", lost+1000)
		if err != nil || m == nil {
			t.Fatal(m, err)
		}
		lost = m.ID
	}
	d := h.connectDevice("watcher")
	d.send(`{"type":"subscribe","channel":"a","state":true,"after":%d}`, r.Last)
	if got, want := types(d.received()), "subscribed state gap state gap state gap state"; got != want {
		t.Errorf("received %s, want %s", got, want)
	}
	h.expect("published", "", "", `{"type":"publish","channel":"a","set":{"n":0}}`)
	if got := types(d.received()); got != "message" {
		t.Errorf("received %s, want the next message", got)
	}
}

// TestPagesCostMessages: each KiB of pages that the client asks for counts as a message, the first
// one with the request.
func TestPagesCostMessages(t *testing.T) {
	for _, request := range []string{
		`{"type":"subscribe","channel":"a","state":true}`,
		`{"type":"state","ref":1,"channel":"a"}`,
	} {
		h := newStateHarness(t, session.Options{Limits: session.Limits{MessageRate: 3}})
		h.backendSet("a", map[string]string{"x": string(large(11 << 10))})
		d := h.connectDevice("watcher")
		d.send("%s", request)
		if got := types(d.received()); strings.Contains(got, "error") {
			t.Errorf("%s: %s", request, got)
		}
		d.expect("error:rate_limited", `{"type":"ping"}`)
	}
}

// TestSmallPagesNeedNoRateUse: a session keeps nothing for pages that one second allows, unless
// something else has used its rates.
func TestSmallPagesNeedNoRateUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newStateHarness(t, session.Options{Limits: session.Limits{MessageRate: 3}})
		h.backendSet("small", map[string]string{"x": string(large(2 << 10))}) // 3 KiB with the rest of the page
		h.backendSet("large", map[string]string{"x": string(large(4 << 10))})
		for channel, counted := range map[string]bool{"small": false, "large": true} {
			d := h.connectDevice(channel)
			h.tick(1) // the subscribe is the first message of its second
			d.expect("subscribed state", `{"type":"subscribe","channel":%q,"state":true}`, channel)
			h.onLoop(func() {
				if got := session.HasRateUse(d.receiver); got != counted {
					t.Errorf("%s: the session has a rateUse: %v", channel, got)
				}
				if session.HasStateUse(d.receiver) || session.HasExtra(d.receiver) != counted {
					t.Errorf("%s: the session keeps more than a rateUse", channel)
				}
			})
		}
		d := h.connectDevice("counted") // its subscribe follows in the same second
		d.expect("subscribed state", `{"type":"subscribe","channel":"small","state":true}`)
		for range 9 { // of the burst of 12, the subscribe and its pages have taken 3
			d.expect("pong", `{"type":"ping"}`)
		}
		d.expect("error:rate_limited", `{"type":"ping"}`)
	})
}
