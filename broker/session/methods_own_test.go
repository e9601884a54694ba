package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/broker/session"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/queue"
)

const joinA = `{"type":"request","ref":1,"method":"join","data":"a"}`

// newJoinHarness is newStateHarness with the method join: the client then owns the field `in` of
// the channel in the data. before is called before Caller.Own; nil means no call.
func newJoinHarness(t *testing.T, o session.Options, before func(context.Context)) *harness {
	var h *harness
	o.Methods = map[string]session.Method{
		"join": func(ctx context.Context, c session.Caller, data json.RawMessage) (any, error) {
			var channel string
			if err := json.Unmarshal(data, &channel); err != nil {
				return nil, err
			}
			if before != nil {
				before(ctx)
			}
			return "joined", c.Own(ctx, channel, func(conn state.Connection) error { return h.join(ctx, channel, conn) })
		},
	}
	h = newStateHarness(t, o)
	return h
}

func (h *harness) join(ctx context.Context, channel string, conn state.Connection) error {
	_, err := h.publish(ctx, session.Publication{Channel: channel, Update: &state.Update{
		Client: conn.Client, Generation: conn.Generation, Server: conn.Server,
		Ops: []state.Op{{Kind: state.Set, Field: "in", Value: []byte("1"), Own: state.Own, Grace: time.Minute}},
	}})
	return err
}

// TestOwn checks that a client without a subscription owns a field: it is away after the
// connection, back with the next update or subscribe, and gone after the grace.
func TestOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newJoinHarness(t, session.Options{}, nil)
		d := h.connectDevice("tablet")
		d.expect("reply", joinA)
		h.wantFields("a", "in=1")
		h.hub.Tick()
		h.settle()
		if servers, err := h.registry.ChannelServers(t.Context(), "a"); len(servers) != 1 {
			t.Errorf("the channel is bound to %v, %v", servers, err)
		}
		d.end()
		h.wantFields("a", "in=1*")
		h.wantUnbound("a")

		d = h.connectDevice("tablet")
		h.wantFields("a", "in=1*")
		d.expect("reply", joinA)
		h.wantFields("a", "in=1")
		d.end()
		h.wantFields("a", "in=1*")
		d = h.connectDevice("tablet")
		d.send(subscribeA)
		d.received()
		h.wantFields("a", "in=1")
		d.end()
		h.wantFields("a", "in=1*")
		<-time.After(time.Minute)
		h.wantFields("a", "")
	})
}

// TestNewConnectionOwns checks that the end of an older connection does not end what the newer one
// owns, and that a late update of the older one is refused.
func TestNewConnectionOwns(t *testing.T) {
	var waits atomic.Bool
	waiting, goOn := make(chan struct{}), make(chan struct{})
	h := newJoinHarness(t, session.Options{}, func(context.Context) {
		if waits.CompareAndSwap(true, false) {
			close(waiting)
			<-goOn
		}
	})
	old := h.connectDevice("tablet")
	old.expect("reply", joinA)
	waits.Store(true)
	h.onLoop(func() { receive(old.receiver, joinA) })
	<-waiting
	next := &device{h: h, client: "tablet", sock: newSocket()}
	h.onLoop(func() {
		next.receiver = h.Accept(h.loop, next.sock, []wire.Request{{Type: wire.TypeConnect, Client: "tablet", Secret: "the secret of tablet"}})
	})
	h.barrier()
	close(goOn)
	h.settle()
	h.onLoop(func() {
		if old.sock.closed != wire.CloseSuperseded {
			t.Errorf("closed as %q", old.sock.closed)
		}
	})
	next.received()
	next.expect("reply", joinA)
	h.wantFields("a", "in=1")
	next.end()
	h.wantFields("a", "in=1*")
}

// TestOwnAfterTheEnd checks that the update does not run if the session has ended before.
func TestOwnAfterTheEnd(t *testing.T) {
	waiting, goOn := make(chan struct{}), make(chan struct{})
	h := newJoinHarness(t, session.Options{}, func(context.Context) { close(waiting); <-goOn })
	h.beforePublish = func(session.Publication) error { t.Error("the update runs"); return nil }
	h.onLoop(func() { receive(h.receiver, joinA) })
	<-waiting
	h.onLoop(h.receiver.Closed)
	close(goOn)
	h.settle()
	h.wantFields("a", "")
	h.wantUnbound("a")
}

// TestEndDuringOwn ends a session while its update is under way: the end is stored after it, also
// if the outcome of the update is unknown.
func TestEndDuringOwn(t *testing.T) {
	for name, failure := range map[string]error{"stored": nil, "no answer": errStore} {
		t.Run(name, func(t *testing.T) {
			h := newJoinHarness(t, session.Options{}, nil)
			started, goOn := make(chan struct{}), make(chan struct{})
			h.beforePublish = func(session.Publication) error { close(started); <-goOn; return nil }
			h.afterPublish = func() error { return failure }
			h.onLoop(func() { receive(h.receiver, joinA) })
			<-started
			h.onLoop(h.receiver.Closed)
			h.hub.Tick()
			h.barrier()
			if h.hub.Channel("a") == nil {
				t.Error("the server has left the channel before the end is stored")
			}
			close(goOn)
			h.settle()
			h.wantFields("a", "in=1*")
			h.wantUnbound("a")
		})
	}
}

// TestOwnAfterUnsubscribe checks that the end of an earlier subscription, which was not stored at
// once, does not end the field, and that the update does not run while it cannot be stored.
func TestOwnAfterUnsubscribe(t *testing.T) {
	h := newJoinHarness(t, session.Options{}, nil)
	d := h.connectDevice("tablet")
	d.send(subscribeA)
	d.received()
	d.setOwned("x")
	step := h.step
	var failing atomic.Bool
	h.step = func(ctx context.Context, list []queue.StateStep) []queue.Outcome[queue.Appended] {
		if failing.Load() {
			return slices.Repeat([]queue.Outcome[queue.Appended]{{Err: errStore}}, len(list))
		}
		return step(ctx, list)
	}
	failing.Store(true)
	d.expect("unsubscribed", unsubscribeA)
	h.beforePublish = func(session.Publication) error { t.Error("the update runs"); return nil }
	d.expect("error:unavailable", joinA)
	h.wantFields("a", "x=1")
	failing.Store(false)
	h.beforePublish = nil
	d.expect("reply", joinA)
	h.tick(3)
	h.wantFields("a", "in=1")
	d.end()
	h.wantFields("a", "in=1*")
}

// TestOwnRefused checks that an update that is refused leaves nothing, and that its refusal shows
// the fields that the client may read.
func TestOwnRefused(t *testing.T) {
	h := newJoinHarness(t, session.Options{}, nil)
	h.beforePublish = func(session.Publication) error {
		return state.Refuse(state.Claimed, state.Details{Field: "in", Fields: map[string]*state.Field{"in": nil}})
	}
	d := h.connectDevice("tablet")
	if e := d.expect("error:conflict", joinA)[0]; e.StateEvent == nil || string(e.Fields) != `{"in":null}` {
		t.Errorf("received %+v", e.StateEvent)
	}
	h.onLoop(func() {
		if session.HasStateUse(d.receiver) {
			t.Error("the session takes the client for an owner")
		}
	})
	h.wantUnbound("a")
}

// TestOwnedChannels checks the limit of channels in which a client owns fields.
func TestOwnedChannels(t *testing.T) {
	o, refused := countRefusals(session.Options{Limits: session.Limits{Channels: 1}})
	h := newJoinHarness(t, o, nil)
	h.expect("reply", "", "", joinA)
	h.expect("reply", "", "", joinA)
	h.expect("error", "rate_limited", "the connection has 1 channels", `{"type":"request","ref":1,"method":"join","data":"b"}`)
	if h.wantFields("b", ""); refused["channels"] != 1 {
		t.Errorf("counted %v", refused)
	}
}

// TestOwnGivesUp checks that nothing is left if the context ends before the loop has begun.
func TestOwnGivesUp(t *testing.T) {
	var caller session.Caller
	h := newHarness(t, session.Options{Methods: map[string]session.Method{
		"keep": func(_ context.Context, c session.Caller, _ json.RawMessage) (any, error) { caller = c; return nil, nil },
	}})
	h.expect("reply", "", "", `{"type":"request","ref":1,"method":"keep"}`)
	pos, err := h.hub.Acquire(t.Context(), "a", nil) // binds the channel, so that Own waits for nothing else
	if err != nil {
		t.Fatal(err)
	}
	busy, goOn := make(chan struct{}), make(chan struct{})
	h.loop.Post(func() { close(busy); <-goOn })
	<-busy
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = caller.Own(ctx, "a", func(state.Connection) error { t.Error("the update runs"); return nil })
	close(goOn)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	h.settle()
	h.onLoop(func() {
		if session.HasStateUse(h.receiver) {
			t.Error("the session keeps an ownership")
		}
	})
	h.hub.Release(pos.Channel)
	h.wantUnbound("a")
	if err := (session.Caller{}).Own(t.Context(), "a", nil); err == nil {
		t.Error("a caller without a connection owns fields")
	}
}
