package session_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/broker/namespace"
	"switchboard/broker/session"
	"switchboard/internal/slots"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// ownRule lets every client own all fields, with a grace period. Each writer of a field mine/*
// becomes its owner.
func ownRule() namespace.Rule {
	anyone := namespace.Anyone
	return namespace.Rule{
		Name: "*", Subscribe: anyone, Publish: anyone, State: anyone, Presence: anyone, Grace: time.Hour,
		Fields: []namespace.FieldRule{{Pattern: "*", Write: anyone}, {Pattern: "mine/*", Write: anyone, Own: true}},
	}
}

func newOwnHarness(t *testing.T) *harness {
	return newStateHarness(t, session.Options{Access: session.Access{Namespaces: ruled(t, ownRule())}})
}

const subscribeA, unsubscribeA = `{"type":"subscribe","channel":"a","state":true}`, `{"type":"unsubscribe","channel":"a"}`

// own connects a device that owns a field.
func (h *harness) own(client, field string) *device {
	h.t.Helper()
	d := h.connectDevice(client)
	d.send(subscribeA)
	d.received()
	d.setOwned(field)
	return d
}

func (d *device) setOwned(field string) {
	d.h.t.Helper()
	d.send(`{"type":"publish","channel":"a","set":{"%s":1},"own":true}`, field)
	if events := d.received(); !slices.ContainsFunc(events, func(e wire.Event) bool { return e.Type == wire.TypePublished }) {
		d.h.t.Fatalf("own %s: %+v", field, events)
	}
}

// TestOwnedFieldsFollowTheConnection: an owned field is away after the connection, and not away
// when the client is back.
func TestOwnedFieldsFollowTheConnection(t *testing.T) {
	h := newOwnHarness(t)
	h.expect("error", "bad_request", "subscribed to the channel with state", `{"type":"publish","channel":"a","set":{"x":1},"own":true}`)
	d := h.own("tablet", "x")
	d.end()
	h.wantFields("a", "x=1*")
	d = h.connectDevice("tablet")
	h.wantFields("a", "x=1*")
	events := d.expect("subscribed state message", subscribeA)
	if len(events[2].Back) != 1 {
		t.Errorf("received %+v", events[2].StateEvent)
	}
	h.wantFields("a", "x=1")
	d.end()
	h.wantFields("a", "x=1*")
	d = h.connectDevice("tablet")
	d.send(subscribeA) // without a further own
	d.received()
	d.expect("unsubscribed", unsubscribeA)
	h.wantFields("a", "")
	d.end()
	h.wantUnbound("a")
}

// wantUnbound checks that the server gives up a channel.
func (h *harness) wantUnbound(channel string) {
	h.t.Helper()
	h.hub.Tick()
	h.settle()
	if h.hub.Channel(channel) != nil {
		h.t.Errorf("the server still holds channel %s", channel)
	}
}

// TestTwoDevicesOwnAField: the field ends with the last of its owners. A rule can make each writer
// an owner.
func TestTwoDevicesOwnAField(t *testing.T) {
	h := newOwnHarness(t)
	first, second := h.own("first", "mine/x"), h.connectDevice("second")
	second.send(subscribeA)
	second.received()
	second.send(`{"type":"publish","channel":"a","touch":["mine/x"]}`)
	first.end()
	h.wantFields("a", "mine/x=1")
	second.end()
	h.wantFields("a", "mine/x=1*")
	first, second = h.connectDevice("first"), h.connectDevice("second")
	h.connectDevice("watcher").expect("subscribed state", subscribeA) // the pages are ready for the others
	first.send(subscribeA)
	second.send(subscribeA)
	h.wantFields("a", "mine/x=1")
	first.send(unsubscribeA)
	h.wantFields("a", "mine/x=1")
	second.send(unsubscribeA)
	h.wantFields("a", "")
}

// TestNewConnectionKeepsFields: the end of an older connection of a client does not end the fields
// of the newer one.
func TestNewConnectionKeepsFields(t *testing.T) {
	h := newOwnHarness(t)
	old := h.own("tablet", "x")
	next := h.own("tablet", "y") // supersedes it
	h.onLoop(func() {
		if old.sock.closed != wire.CloseSuperseded {
			t.Errorf("closed as %q", old.sock.closed)
		}
	})
	h.wantFields("a", "x=1 y=1")
	next.end()
	h.wantFields("a", "x=1* y=1*")
}

// TestForcedUnsubscribeEndsFields: fields end when access rules end the subscription.
func TestForcedUnsubscribeEndsFields(t *testing.T) {
	var set atomic.Pointer[namespace.Set]
	set.Store(ruled(t, ownRule())())
	h := newStateHarness(t, session.Options{Access: session.Access{Namespaces: set.Load}})
	d := h.own("tablet", "x")
	rule := ownRule()
	rule.State = namespace.BackendOnly
	set.Store(ruled(t, rule)())
	h.Recheck()
	h.settle()
	if events := d.received(); types(events) != "unsubscribed:forbidden" {
		t.Errorf("received %+v", events)
	}
	h.wantFields("a", "")
	h.wantUnbound("a")
}

// TestEndDuringUpdate ends a session, or its subscription, while its update is under way: the end
// is stored after the update.
func TestEndDuringUpdate(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(h *harness, d *device)
		err  error // of the update, although it was stored
		want string
	}{
		"closed":            {func(_ *harness, d *device) { d.receiver.Closed() }, nil, "x=1*"},
		"closed, no answer": {func(_ *harness, d *device) { d.receiver.Closed() }, errStore, "x=1*"},
		"not replicated":    {func(_ *harness, d *device) { d.receiver.Closed() }, queue.ErrNotReplicated, "x=1*"},
		"unsubscribed":      {func(h *harness, _ *device) { h.Recheck() }, nil, ""},
		"no answer":         {func(h *harness, _ *device) { h.Recheck() }, errStore, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var set atomic.Pointer[namespace.Set]
			set.Store(ruled(t, ownRule())())
			h := newStateHarness(t, session.Options{Access: session.Access{Namespaces: set.Load}})
			d := h.connectDevice("tablet")
			d.send(subscribeA)
			started, goOn := make(chan struct{}), make(chan struct{})
			h.beforePublish = func(session.Publication) error { close(started); <-goOn; return nil }
			h.afterPublish = func() error { return c.err }
			var steps atomic.Int32
			step := h.step
			h.step = func(ctx context.Context, list []queue.StateStep) []queue.Outcome[queue.Appended] {
				steps.Add(1)
				return step(ctx, list)
			}
			h.onLoop(func() { receive(d.receiver, `{"type":"publish","channel":"a","set":{"x":1},"own":true}`) })
			<-started
			if set.Store(ruled(t, namespace.Rule{Name: "none"})()); c.want != "" {
				h.onLoop(func() { c.end(h, d) })
			} else {
				c.end(h, d)
			}
			h.hub.Tick()
			h.barrier()
			if steps.Load() > 0 {
				t.Error("the end was stored before the update")
			}
			if h.hub.Channel("a") == nil {
				t.Error("the server has left the channel before the end is stored")
			}
			close(goOn)
			h.settle()
			h.wantFields("a", c.want)
			d.end()
			h.wantUnbound("a")
		})
	}
}

// TestLateUpdateOfAnOwner: the store executes an update after the broker gave up on it, and after
// the client unsubscribed. The field ends with the session.
func TestLateUpdateOfAnOwner(t *testing.T) {
	h := newOwnHarness(t)
	d := h.own("tablet", "x")
	var late session.Publication
	h.beforePublish = func(p session.Publication) error { late = p; return errStore }
	d.expect("error:unavailable", `{"type":"publish","channel":"a","set":{"y":1},"own":true}`)
	h.beforePublish = nil
	d.expect("unsubscribed", unsubscribeA)
	if _, err := h.publish(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	h.wantFields("a", "y=1")
	d.end()
	h.wantFields("a", "y=1*")
	h.wantUnbound("a")
}

// barrier lets jobs run while another one is blocked. It does not wait for their end, so a check
// after it may miss a fault, but never reports a wrong one.
func (h *harness) barrier() {
	for range 3 {
		done := make(chan struct{})
		h.pool.Go(func() { close(done) })
		<-done
		h.onLoop(func() {})
	}
}

// TestOwnersAreStoredWhenTheStoreIsBack: the server stays bound to the channel until the store has
// the end, which is tried again at each tick.
func TestOwnersAreStoredWhenTheStoreIsBack(t *testing.T) {
	h := newOwnHarness(t)
	ended, left := h.own("ended", "x"), h.own("left", "y")
	step := h.step
	var failing atomic.Bool
	h.step = func(ctx context.Context, list []queue.StateStep) []queue.Outcome[queue.Appended] {
		if !failing.Load() || list[0].Kind == queue.OwnerBack {
			return step(ctx, list)
		}
		return slices.Repeat([]queue.Outcome[queue.Appended]{{Err: errStore}}, len(list))
	}
	failing.Store(true)
	ended.end()
	left.expect("unsubscribed", unsubscribeA)
	h.tick(3)
	h.wantFields("a", "x=1 y=1")
	h.hub.Tick()
	h.settle()
	if h.hub.Channel("a") == nil {
		t.Error("the server has left the channel before the end is stored")
	}
	left.expect("error:unavailable", subscribeA) // the end of the earlier subscription comes first
	failing.Store(false)
	h.tick(1)
	h.wantFields("a", "x=1*")
	h.wantUnbound("a")
	left.send(subscribeA)
	left.setOwned("z")
	h.tick(3)
	h.wantFields("a", "x=1* z=1")
}

// TestSubscribeStoresTheEndBefore: a client that subscribes again, and owns a field again, does not
// lose it to the end of the earlier subscription.
func TestSubscribeStoresTheEndBefore(t *testing.T) {
	h := newOwnHarness(t)
	d := h.own("tablet", "x")
	step := h.step
	var failing atomic.Bool
	h.step = func(ctx context.Context, list []queue.StateStep) []queue.Outcome[queue.Appended] {
		if failing.CompareAndSwap(true, false) {
			return slices.Repeat([]queue.Outcome[queue.Appended]{{Err: errStore}}, len(list))
		}
		return step(ctx, list)
	}
	failing.Store(true)
	d.expect("unsubscribed", unsubscribeA)
	h.wantFields("a", "x=1")
	d.send(subscribeA)
	d.received()
	d.setOwned("y")
	h.tick(3)
	h.wantFields("a", "y=1")
	d.end()
	h.wantFields("a", "y=1*")
}

// TestRestoreOwners: a server that was declared dead stores under its new id that its clients are
// connected.
func TestRestoreOwners(t *testing.T) {
	h := newOwnHarness(t)
	d := h.own("tablet", "x")
	h.own("away", "y").end()
	ended := queue.StateStep{Channel: "a", Kind: queue.ServerEnded}
	ended.Conn.Server = "me"
	h.stepStates(t.Context(), []queue.StateStep{ended})
	h.wantFields("a", "x=1* y=1*")
	d.received()
	d.expect("error:unavailable", `{"type":"publish","channel":"a","set":{"z":1}}`)
	h.serverID.Store(new("me-2"))
	all := slots.All()
	if err := h.RestoreOwners(t.Context(), new(slots.Set)); err != nil {
		t.Fatal(err)
	}
	h.wantFields("a", "x=1* y=1*") // no slot, no owner
	if err := h.RestoreOwners(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	h.wantFields("a", "x=1 y=1*")
	d.setOwned("z")
	d.end()
	h.wantFields("a", "x=1* y=1* z=1*")
	step := h.step
	h.step = func(context.Context, []queue.StateStep) []queue.Outcome[queue.Appended] {
		return []queue.Outcome[queue.Appended]{{Err: errStore}}
	}
	h.own("another", "z2")
	if h.RestoreOwners(t.Context(), &all) == nil {
		t.Error("a failure is not reported")
	}
	h.step = step
}

// TestRefusedOwnerHoldsNothing: an update that is refused does not make the client an owner.
func TestRefusedOwnerHoldsNothing(t *testing.T) {
	h := newOwnHarness(t)
	d := h.connectDevice("tablet")
	d.send(subscribeA)
	d.received()
	d.expect("error:conflict", `{"type":"publish","channel":"a","set":{"x":1},"own":true,"if":{"x":true}}`)
	h.onLoop(func() {
		if session.HasStateUse(d.receiver) {
			t.Error("the session takes the client for an owner")
		}
	})
	d.setOwned("x")
	d.expect("message published", `{"type":"publish","channel":"a","touch":["x"],"own":false}`)
	d.end()
	h.wantFields("a", "x=1")
}

// TestUnsubscribeDuringPages: a client adds the state to its subscription and unsubscribes before
// the server has stored that the owner is back. Its fields end.
func TestUnsubscribeDuringPages(t *testing.T) {
	h := newOwnHarness(t)
	h.own("tablet", "x").end()
	d := h.connectDevice("tablet")
	d.expect("subscribed", `{"type":"subscribe","channel":"a"}`)
	started, goOn := make(chan struct{}), make(chan struct{})
	step := h.step
	h.step = func(ctx context.Context, list []queue.StateStep) []queue.Outcome[queue.Appended] {
		if list[0].Kind == queue.OwnerBack {
			close(started)
			<-goOn
		}
		return step(ctx, list)
	}
	h.onLoop(func() { receive(d.receiver, subscribeA) })
	<-started
	h.onLoop(func() { receive(d.receiver, unsubscribeA) })
	h.barrier()
	close(goOn)
	h.settle()
	h.wantFields("a", "")
	h.wantUnbound("a")
}

// TestForbiddenDuringSubscribe: access rules forbid a subscribe while its pages are made. The
// session then does not hold the channel.
func TestForbiddenDuringSubscribe(t *testing.T) {
	var set atomic.Pointer[namespace.Set]
	set.Store(ruled(t, ownRule())())
	states := &statesHook{}
	o := session.Options{Access: session.Access{Namespaces: set.Load}}
	h := newHarnessOn(t, o, func(q Queue) Queue { states.Queue = q; return states })
	none := ruled(t, namespace.Rule{Name: "none"})()
	states.beforeRead = func() { set.Store(none) }
	h.expect("error", "forbidden", "", subscribeA)
	h.onLoop(func() {
		if session.HasStateUse(h.receiver) {
			t.Error("the session holds the channel")
		}
	})
	h.wantUnbound("a")
}

// statesHook is a queue that calls beforeRead before it reads states.
type statesHook struct {
	Queue
	beforeRead func()
}

// ReadStates implements session.Queue.
func (q *statesHook) ReadStates(ctx context.Context, reads []queue.StateRead) []queue.Outcome[queue.StatePage] {
	q.beforeRead()
	return q.Queue.ReadStates(ctx, reads)
}

// TestDrainStoresTheEnds: a server that shuts down stores the ends in jobs of the pool.
func TestDrainStoresTheEnds(t *testing.T) {
	h := newOwnHarness(t)
	h.own("first", "x")
	h.own("second", "y")
	h.Drain(time.Second)
	h.pool.Wait()
	h.wantFields("a", "x=1* y=1*")
}
