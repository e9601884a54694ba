package sim

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/broker/delivery"
	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// stateSeed is the seed of a calm world with states, whose owned fields stay when they are away.
const stateSeed = 36

// playStates runs a script in that world.
func playStates(t *testing.T, script func(w *world)) {
	t.Helper()
	var w *world
	synctest.Test(t, func(*testing.T) {
		w = newWorld(stateSeed)
		defer w.stop()
		script(w)
	})
	if w.violation != "" {
		t.Errorf("%s\n\n%s", strings.Join(w.trace, "\n"), w.violation)
	}
}

// follow connects a client and subscribes it to news with the state.
func (w *world) follow(client string, n *node) *conn {
	c := w.clients[client].dial(n)
	w.runUntilIdle()
	c.send(followNews)
	w.runUntilIdle()
	return c
}

// followNews subscribes to news with the state.
var followNews = wire.Request{Type: wire.TypeSubscribe, Channel: "news", StateRequest: &wire.StateRequest{State: new(wire.Selector)}}

// set publishes a field. If it is a member, the client then owns it.
func (c *conn) set(field string) {
	change := &wire.Change{Set: wire.Values{{Name: field, JSON: json.RawMessage("1")}}}
	c.send(wire.Request{Type: wire.TypePublish, Channel: "news", Change: change})
}

// TestOwnersAreRestored checks that a field is not away after the server of its owner was declared
// dead and continues under a new id.
func TestOwnersAreRestored(t *testing.T) {
	playStates(t, func(w *world) {
		n := w.nodes[0]
		w.follow("ann/c1", n).set("member/c1")
		w.runUntilIdle()
		time.Sleep(11 * time.Second) // no beat: the lease ends
		w.waitForJanitor()
		if f := w.model.fieldsOf("news").fold.Fields["member/c1"]; !f.Away {
			w.violate("the server is dead, but the field is %+v", f)
		}
		n.startBeat()
		w.runUntilIdle()
		if f := w.model.fieldsOf("news").fold.Fields["member/c1"]; f.ID == 0 || f.Away {
			w.violate("the server is back, but the field is %+v", f)
		}
	})
}

// waitForJanitor lets the janitor declare servers without a lease dead.
func (w *world) waitForJanitor() {
	for range 3 {
		w.startJanitor(func() { _, _ = w.janitor.ServersRound(backgroundContext) })
		w.runUntilIdle()
		time.Sleep(31 * time.Second) // two of these are longer than janitor.Options.Patience
	}
}

// TestLateUpdateOwnsNothing checks that an update whose connection has ended is refused, if the
// store executes it only then. The channel has a state already: otherwise the store does not record
// the end of the connection.
func TestLateUpdateOwnsNothing(t *testing.T) {
	playStates(t, func(w *world) {
		w.profile = shaky
		c := w.follow("ann/c1", w.nodes[0])
		c.set("turn")
		w.runUntilIdle()
		c.set("member/c1")
		update := w.runUntil("UpdateChannel")
		update.orphan = true // its caller receives an error, and the store executes it later
		update.answer <- result{nil, errLost}
		w.settle()
		c.leave()
		c.noticeEnd()
		w.runUntil("UpdateChannel")
		w.executeAndAnswer(update)
		w.runUntilIdle()
		if fields := w.model.fieldsOf("news").stored(); len(fields) != 1 {
			w.violate("the client has left, but the store has %s", describeFields(fields))
		}
	})
}

// TestFollowDuringChange subscribes a client with the state while an update, or the end of an
// owner, is half executed. Either the change finds the server of the client, or the client's pages
// have it.
func TestFollowDuringChange(t *testing.T) {
	for _, op := range []string{"UpdateChannel", "StepState"} {
		for _, executions := range []int{1, 2} {
			playStates(t, func(w *world) {
				c := w.follow("ann/c1", w.nodes[0])
				if op == "StepState" {
					c.set("member/c1")
					w.runUntilIdle()
					c.unsubscribe("news")
				} else {
					c.set("turn")
				}
				change := w.runUntil(op)
				for range executions { // the first writes, the second reads the servers
					w.execute(change)
				}
				d := w.clients["ben/c2"].dial(w.nodes[1])
				w.runUntil(op)
				d.send(followNews)
				w.runUntil(op)
				w.executeAndAnswer(change)
				w.runUntilIdle()
				if last := w.model.channel("news").last(); d.subs["news"] == nil || d.subs["news"].cursor != last {
					w.violate("%v does not have the last entry, %d", d, last)
				}
			})
		}
	}
}

// TestSilentSweepIsRead checks that subscribers learn of fields that the janitor removes before
// their server does so.
func TestSilentSweepIsRead(t *testing.T) {
	playStates(t, func(w *world) {
		c := w.follow("ann/c1", w.nodes[0])
		op := state.Op{Field: "turn", Kind: state.Set, Value: []byte("1"), TTL: 10 * time.Millisecond}
		go func() {
			u := &state.Update{Writer: state.BackendHolder, Ops: []state.Op{op}, Limits: state.Limits{Keep: time.Hour}}
			_, _ = w.nodes[1].pusher.ToChannel(backgroundContext, "news", delivery.Payload{Update: u})
		}()
		w.settle()
		w.runUntilIdle()
		time.Sleep(10 * time.Millisecond)
		w.stepStatesRound()
		w.runUntilIdle()
		time.Sleep(time.Second)
		w.settle() // the sweep of the server begins
		w.runUntilIdle()
		if last := w.model.channel("news").last(); len(w.model.fieldsOf("news").fold.Fields) > 0 || c.subs["news"].cursor != last {
			w.violate("%v is at %d, want %d", c, c.subs["news"].cursor, last)
		}
	})
}
