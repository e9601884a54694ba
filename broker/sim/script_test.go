package sim

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/internal/wire"
)

// playScript runs a fixed script instead of random steps, in a calm world.
func playScript(t *testing.T, script func(w *world)) {
	t.Helper()
	var w *world
	synctest.Test(t, func(*testing.T) {
		w = newWorld(0)
		defer w.stop()
		script(w)
	})
	if w.violation != "" {
		t.Errorf("%s\n\n%s", strings.Join(w.trace, "\n"), w.violation)
	}
}

// runUntil runs everything except calls of op, and then returns the first of these, if any.
func (w *world) runUntil(op string) *call {
	for range maxSteps {
		var held *call
		runs, calls := w.dueRuns(), w.openCalls()
		switch {
		case len(runs) > 0:
			w.runLoop(runs[0])
			continue
		case w.failed():
			return nil
		}
		moved := false
		for _, c := range calls {
			if c.op != op {
				w.executeAndAnswer(c)
				moved = true
				break
			}
			held = c
		}
		if !moved {
			return held
		}
	}
	return nil
}

// TestSubscribeWhileUnbinding subscribes while the registry unbinds the channel, after the last
// subscriber left.
func TestSubscribeWhileUnbinding(t *testing.T) {
	playScript(t, func(w *world) {
		c := w.clients["ann/c1"].dial(w.nodes[0])
		w.runUntilIdle()
		c.subscribe("news", nil)
		w.runUntilIdle()
		c.unsubscribe("news")
		w.nodes[0].tick()
		unbind := w.runUntil("UnbindChannel")
		c.subscribe("news", nil)
		w.runUntil("UnbindChannel")
		if c.subs["news"] != nil {
			w.violate("%v is subscribed, but the registry is about to unbind the channel", c)
		}
		w.executeAndAnswer(unbind)
		w.runUntilIdle()
		w.push(w.nodes[1], "channel", "news")
		w.runUntilIdle()
		w.checkComplete()
		if c.subs["news"] == nil {
			w.violate("%v is not subscribed", c)
		}
	})
}

// TestEndedConnectSupersedes ends a connection while it is being bound. It has taken the client
// over from the earlier connection, which must be closed.
func TestEndedConnectSupersedes(t *testing.T) {
	playScript(t, func(w *world) {
		cl := w.clients["ann/c1"]
		first := cl.dial(w.nodes[0])
		w.runUntilIdle()
		second := cl.dial(w.nodes[1])
		bind := w.runUntil("Bind")
		second.leave()
		second.noticeEnd()
		w.executeAndAnswer(bind)
		w.runUntilIdle()
		if first.reason != wire.CloseSuperseded {
			w.violate("%v lost its client, but its close reason is %q", first, first.reason)
		}
	})
}

// TestBindWhileDeclaredDead binds a client under the old id while its server is declared dead,
// detects that, and binds everything again under a new id.
func TestBindWhileDeclaredDead(t *testing.T) {
	playScript(t, func(w *world) {
		n := w.nodes[0]
		time.Sleep(11 * time.Second) // no beat: the lease ends
		w.clients["ann/c1"].dial(n)
		bind := w.runUntil("Bind")
		if buried, _ := w.registry.DeclareDead(t.Context(), n.serverID()); !buried {
			w.violate("the server still has a lease")
		}
		n.startBeat()
		w.runUntil("Bind")
		w.executeAndAnswer(bind)
		w.runUntilIdle()
		w.push(w.nodes[1], "client", "ann/c1")
		w.runUntilIdle()
		w.checkComplete()
	})
}

// TestDeclaredDeadKeepsConnections checks that clients notice nothing when their server is declared
// dead: it continues under a new id, without a tick.
func TestDeclaredDeadKeepsConnections(t *testing.T) {
	playScript(t, func(w *world) {
		n := w.nodes[0]
		c := w.clients["ann/c1"].dial(n)
		w.runUntilIdle()
		c.subscribe("news", nil)
		w.runUntilIdle()
		time.Sleep(11 * time.Second) // no beat: the lease ends
		for range 3 {
			w.startJanitor(func() { _, _ = w.janitor.ServersRound(backgroundContext) })
			w.runUntilIdle()
			time.Sleep(31 * time.Second) // longer than the janitor spares a server that answers its probe
		}
		old := n.serverID()
		n.startBeat()
		w.runUntilIdle()
		w.pushAll()
		w.checkComplete()
		if n.serverID() == old || !w.model.dead[old] || c.state != open {
			w.violate("%s is the server after %s; %v is open: %v", n.serverID(), old, c, c.state == open)
		}
	})
}

// TestSubscribeDuringPush checks that the pusher sees the new owner, or the new owner's first read
// returns the message.
func TestSubscribeDuringPush(t *testing.T) {
	for _, halves := range []int{1, 2} {
		playScript(t, func(w *world) {
			c := w.clients["ann/c1"].dial(w.nodes[0])
			w.runUntilIdle()
			w.push(w.nodes[1], "channel", "news")
			push := w.runUntil("AppendChannel")
			for range halves { // appended, or also the owners read
				w.execute(push)
			}
			c.subscribe("news", new(int64))
			w.runUntil("AppendChannel")
			w.executeAndAnswer(push)
			w.runUntilIdle()
			w.checkComplete()
		})
	}
}

// TestLostAnswerOfAPush checks that a message is stored but not acknowledged, and that the owners
// receive a hint with the next beat.
func TestLostAnswerOfAPush(t *testing.T) {
	for target, op := range map[string]string{wire.AllChannel: "AppendChannel", "ann/c1": "AppendClient"} {
		playScript(t, func(w *world) {
			w.profile = shaky
			w.clients["ann/c1"].dial(w.nodes[0])
			w.runUntilIdle()
			w.nodes[1].startBeat() // the first beat binds everything again
			w.runUntilIdle()
			if op == "AppendChannel" {
				w.push(w.nodes[1], "channel", target)
			} else {
				w.push(w.nodes[1], "client", target)
			}
			c := w.runUntil(op)
			for c.stage != executed {
				w.execute(c)
			}
			w.fail(c, errLost)
			w.nodes[1].startBeat()
			w.runUntilIdle()
			w.checkComplete()
		})
	}
}

// TestReleaseOfAClientThatMoved lets the janitor release a client of a dead server that has moved
// to another server meanwhile.
func TestReleaseOfAClientThatMoved(t *testing.T) {
	playScript(t, func(w *world) {
		w.clients["ann/c1"].dial(w.nodes[0])
		w.runUntilIdle()
		w.nodes[0].crash()
		time.Sleep(11 * time.Second)
		w.node("b2").startBeat()
		w.runUntilIdle()
		for range 2 {
			w.startJanitor(func() { _, _ = w.janitor.ServersRound(backgroundContext) })
			w.runUntil("Release")
		}
		release := w.runUntil("Release")
		w.clients["ann/c1"].dial(w.node("b2"))
		w.runUntil("Release")
		w.executeAndAnswer(release)
		w.runUntilIdle()
		w.checkComplete()
	})
}

// TestLostAnswerOfBindSupersedes moves a client whose new server does not receive the answer of the
// binding. Whether or not the client connects there again, the old server must close its connection
// soon.
func TestLostAnswerOfBindSupersedes(t *testing.T) {
	for _, again := range []bool{false, true} {
		playScript(t, func(w *world) {
			w.profile = shaky
			first := w.clients["ann/c1"].dial(w.nodes[0])
			w.runUntilIdle()
			w.clients["ann/c1"].dial(w.nodes[1])
			bind := w.runUntil("Bind")
			w.execute(bind)
			w.fail(bind, errLost)
			w.runUntilIdle()
			if again {
				w.clients["ann/c1"].dial(w.nodes[1])
				w.runUntilIdle()
			}
			w.nodes[1].tick()
			w.runUntilIdle()
			if first.reason != wire.CloseSuperseded {
				w.violate("%v lost its client, but its close reason is %q", first, first.reason)
			}
		})
	}
}

// TestLostAnswerOfBindLeavesNothing checks that the client is offline if it does not connect again.
func TestLostAnswerOfBindLeavesNothing(t *testing.T) {
	for _, op := range []string{"HoldClient", "Bind", "BindUser", "BindChannel"} {
		playScript(t, func(w *world) {
			w.profile = shaky
			w.clients["ann/c1"].dial(w.nodes[0])
			c := w.runUntil(op)
			w.execute(c)
			w.fail(c, errLost)
			w.runUntilIdle()
			w.disconnectAll()
			w.checkNothingLeft()
		})
	}
}
