package session_test

import (
	"fmt"
	"testing"

	"switchboard/broker/session"
)

// TestOwnerIsBackBeforeTheStateShowsIt: a client owns a field, reconnects and subscribes again
// before its server knows the field. Without another message of the client the field is not away.
func TestOwnerIsBackBeforeTheStateShowsIt(t *testing.T) {
	for name, known := range map[string]bool{"neither the field nor its end is known": false, "the field is known": true} {
		t.Run(name, func(t *testing.T) {
			h := newOwnHarness(t)
			watcher := h.connectDevice("watcher")
			watcher.expect("subscribed state", subscribeA)
			d := h.connectDevice("tablet")
			d.expect("subscribed state", subscribeA)
			h.hints = known
			d.send(`{"type":"publish","channel":"a","set":{"x":1},"own":true}`)
			h.hints = false
			d.end()
			h.wantFields("a", "x=1*")
			d = h.connectDevice("tablet")
			d.send(subscribeA)
			h.hints = true
			if err := h.hub.Compare(t.Context(), 0); err != nil {
				t.Error(err)
			}
			h.settle()
			h.settle()
			h.wantFields("a", "x=1")
			d.end()
			h.wantFields("a", "x=1*")
			d = h.connectDevice("tablet")
			d.send(subscribeA)
			d.send(unsubscribeA)
			h.wantFields("a", "")
		})
	}
}

// TestRefusedSubscribeIsNotBack: the channel refuses the prefix of an owner that subscribes again.
// Its fields stay away.
func TestRefusedSubscribeIsNotBack(t *testing.T) {
	h := newOwnHarness(t)
	h.own("tablet", "x").end()
	others := 0
	for {
		d := h.connectDevice(fmt.Sprint("d", others))
		d.send(`{"type":"subscribe","channel":"a","state":"p%d"}`, others)
		if types(d.received()) != "subscribed state" {
			break
		}
		others++
	}
	if others < 200 {
		t.Fatalf("%d prefixes are accepted", others)
	}
	d := h.connectDevice("tablet")
	d.expect("error:rate_limited", `{"type":"subscribe","channel":"a","state":"another"}`)
	h.wantFields("a", "x=1*")
	h.onLoop(func() {
		if session.HasStateUse(d.receiver) {
			t.Error("the session holds the channel")
		}
	})
	d.expect("subscribed state message", subscribeA)
	h.wantFields("a", "x=1")
}

// TestLateFirstUpdateOfAnOwner: the store executes the first update of a channel's state after the
// broker gave up on it, and after the end of the session. The update is refused.
func TestLateFirstUpdateOfAnOwner(t *testing.T) {
	h := newOwnHarness(t)
	d := h.connectDevice("tablet")
	d.expect("subscribed state", subscribeA)
	var late session.Publication
	h.beforePublish = func(p session.Publication) error { late = p; return errStore }
	d.expect("error:unavailable", `{"type":"publish","channel":"a","set":{"x":1},"own":true}`)
	h.beforePublish = nil
	d.end()
	if _, err := h.publish(t.Context(), late); err == nil {
		t.Error("the late update is accepted")
	}
	h.wantFields("a", "")
	h.wantUnbound("a")
}
