package sim

import (
	"slices"
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

// runUntil runs all loops and all store calls except those of op. It then returns a call of op that
// waits, or nil.
func (w *world) runUntil(op string) *call {
	for range maxSteps {
		if runs := w.dueRuns(); len(runs) > 0 {
			w.runLoop(runs[0])
			continue
		}
		calls := w.openCalls()
		other := slices.IndexFunc(calls, func(c *call) bool { return c.op != op })
		switch {
		case w.failed() || len(calls) == 0:
			return nil
		case other < 0:
			return calls[0]
		}
		w.executeAndAnswer(calls[other])
	}
	return nil
}

// meet lets all brokers learn of each other, and opens their links.
func (w *world) meet() {
	for range 2 {
		for _, n := range w.nodes {
			n.startBeat()
			w.runUntilIdle()
		}
	}
	w.sweepAll()
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
		w.runUntilIdle() // until the roster is written: a channel stays bound until then
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

// TestEndedConnectSupersedes ends a connection while it is being bound. Its binding takes the
// client over, so the client's earlier connection must be closed.
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

// TestBindWhileDeclaredDead declares a server dead while it binds a client under its old id. The
// server notices and binds everything again under a new id. The client must receive a push.
func TestBindWhileDeclaredDead(t *testing.T) {
	playScript(t, func(w *world) {
		n := w.nodes[0]
		time.Sleep(11 * time.Second) // no beat: the lease ends
		w.clients["ann/c1"].dial(n)
		bind := w.runUntil("Bind")
		if declared, _ := w.registry.DeclareDead(t.Context(), n.serverID()); !declared {
			w.violate("the server still has a lease")
		}
		n.startBeat()
		w.runUntil("Bind")
		w.executeAndAnswer(bind)
		w.runUntilIdle()
		w.meet()
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
			time.Sleep(31 * time.Second) // two of these are longer than janitor.Options.Patience
		}
		old := n.serverID()
		n.startBeat()
		w.runUntilIdle()
		w.meet()
		w.pushAll()
		w.checkComplete()
		if n.serverID() == old || !w.model.dead[old] || c.state != open {
			w.violate("the server id was %s and is %s, want a new one; %v is open: %v, want true", old, n.serverID(), c, c.state == open)
		}
	})
}

// TestSubscribeDuringPush checks that the pusher sees the new owner, or the new owner's first read
// returns the message.
func TestSubscribeDuringPush(t *testing.T) {
	for _, executions := range []int{1, 2} {
		playScript(t, func(w *world) {
			c := w.clients["ann/c1"].dial(w.nodes[0])
			w.runUntilIdle()
			w.push(w.nodes[1], "channel", "news")
			push := w.runUntil("AppendChannel")
			for range executions { // the first appends the message, the second reads the owners
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

// TestLostAnswerOfAPush loses the answer of a push, so that the message is stored without a hint.
// The owners must receive one with the next beat.
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

// TestReleaseOfAClientThatMoved moves a client from a dead server to another one, while the janitor
// is about to release it from the dead one.
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

// TestLostAnswerOfBindSupersedes moves a client to another server and loses the answer of the
// binding there. The first server must close its connection at the other server's next tick,
// whether or not the client connects there again.
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

// TestLateBind executes the bind of a connection whose caller gave up, after the client connected
// elsewhere, or left. Both must stay as they are.
func TestLateBind(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		playScript(t, func(w *world) {
			w.profile = shaky
			cl := w.clients["ann/c1"]
			cl.dial(w.nodes[0])
			bind := w.runUntil("Bind")
			bind.answer <- result{nil, errLost}
			bind.orphan = true
			time.Sleep(time.Second)
			second := cl.dial(w.nodes[1])
			for done := false; !done; done = w.model.bound[cl.name] != nil {
				other := w.runUntil("Bind")
				if calls := w.openCalls(); other == bind {
					other = calls[1]
				}
				w.executeAndAnswer(other)
			}
			if leaves {
				second.leave()
				second.noticeEnd()
			}
			w.runUntilIdle() // executes the late bind
			if w.checkComplete(); second.reason != "" {
				w.violate("%v is closed as %s", second, second.reason)
			}
			if !w.failed() {
				w.disconnectAll()
				w.checkNothingLeft()
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
