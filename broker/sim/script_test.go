package sim

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/internal/wire"
)

// scripted plays a story instead of drawing one, in a calm world.
func scripted(t *testing.T, story func(w *world)) {
	t.Helper()
	var w *world
	synctest.Test(t, func(*testing.T) {
		w = newWorld(0)
		defer w.end()
		story(w)
	})
	if w.broken != "" {
		t.Errorf("%s\n\n%s", strings.Join(w.trace, "\n"), w.broken)
	}
}

// until lets everything flow but calls of op, and returns the first of those when nothing else is left.
func (w *world) until(op string) *call {
	for range mostSteps {
		var held *call
		turns, calls := w.turnsDue(), w.callsDue()
		switch {
		case len(turns) > 0:
			w.run(turns[0])
			continue
		case w.stopped():
			return nil
		}
		moved := false
		for _, c := range calls {
			if c.op != op {
				w.express(c)
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

// TestSubscribeWhileUnbinding: the last subscriber went, and while the registry is told so another comes.
func TestSubscribeWhileUnbinding(t *testing.T) {
	scripted(t, func(w *world) {
		c := w.clients["ann/c1"].dial(w.nodes[0])
		w.flow()
		c.subscribe("news", nil)
		w.flow()
		c.unsubscribe("news")
		w.nodes[0].tick()
		unbind := w.until("UnbindChannel")
		c.subscribe("news", nil)
		w.until("UnbindChannel")
		if c.subs["news"] != nil {
			w.violate("%v is subscribed, and the registry is about to forget that", c)
		}
		w.express(unbind)
		w.flow()
		w.push(w.nodes[1], "channel", "news")
		w.flow()
		w.checkComplete()
		if c.subs["news"] == nil {
			w.violate("%v is not subscribed", c)
		}
	})
}

// TestConnectThatBrokeOffSupersedes: a connection that ends while it is bound has taken the client from
// the one before, which must hear of it.
func TestConnectThatBrokeOffSupersedes(t *testing.T) {
	scripted(t, func(w *world) {
		cl := w.clients["ann/c1"]
		first := cl.dial(w.nodes[0])
		w.flow()
		second := cl.dial(w.nodes[1])
		bind := w.until("Bind")
		second.leave()
		second.notice()
		w.express(bind)
		w.flow()
		if first.reason != wire.CloseSuperseded {
			w.violate("%v lost its client and is %q", first, first.reason)
		}
	})
}

// TestBindDuringBurial: the server is declared dead, finds out and asserts all that it holds while a client
// is being bound under the old id.
func TestBindDuringBurial(t *testing.T) {
	scripted(t, func(w *world) {
		n := w.nodes[0]
		time.Sleep(11 * time.Second) // no beat: the lease runs out
		w.clients["ann/c1"].dial(n)
		bind := w.until("Bind")
		if buried, _ := w.registry.Bury(t.Context(), n.serverID()); !buried {
			w.violate("it has a lease")
		}
		n.startBeat()
		w.until("Bind")
		w.express(bind)
		w.flow()
		w.push(w.nodes[1], "client", "ann/c1")
		w.flow()
		w.checkComplete()
	})
}

// TestBurialIsNotNoticed by the clients: the server goes on under a new id, without a tick.
func TestBurialIsNotNoticed(t *testing.T) {
	scripted(t, func(w *world) {
		n := w.nodes[0]
		c := w.clients["ann/c1"].dial(n)
		w.flow()
		c.subscribe("news", nil)
		w.flow()
		time.Sleep(11 * time.Second) // no beat: the lease runs out
		for range 3 {
			w.clean(func() { _, _ = w.janitor.ServersRound(backgroundContext) })
			w.flow()
			time.Sleep(31 * time.Second) // longer than the janitor spares who answers
		}
		old := n.serverID()
		n.startBeat()
		w.flow()
		w.pushAll()
		w.checkComplete()
		if n.serverID() == old || !w.model.buried[old] || c.life != open {
			w.violate("%s was %s, %v is open: %v", n.serverID(), old, c, c.life == open)
		}
	})
}

// TestSubscribeDuringPush: either the pusher sees the new owner, or the new owner's first read sees the message.
func TestSubscribeDuringPush(t *testing.T) {
	for _, halves := range []int{1, 2} {
		scripted(t, func(w *world) {
			c := w.clients["ann/c1"].dial(w.nodes[0])
			w.flow()
			w.push(w.nodes[1], "channel", "news")
			push := w.until("AppendChannel")
			for range halves { // appended, or also the owners read
				w.execute(push)
			}
			c.subscribe("news", new(int64))
			w.until("AppendChannel")
			w.express(push)
			w.flow()
			w.checkComplete()
		})
	}
}

// TestLostAnswerOfAPush: it is stored and not acknowledged; the owners hear of it with the next beat.
func TestLostAnswerOfAPush(t *testing.T) {
	for target, op := range map[string]string{wire.AllChannel: "AppendChannel", "ann/c1": "AppendClient"} {
		scripted(t, func(w *world) {
			w.profile = shaky
			w.clients["ann/c1"].dial(w.nodes[0])
			w.flow()
			w.nodes[1].startBeat() // the first one asserts
			w.flow()
			if op == "AppendChannel" {
				w.push(w.nodes[1], "channel", target)
			} else {
				w.push(w.nodes[1], "client", target)
			}
			c := w.until(op)
			for c.stage != executed {
				w.execute(c)
			}
			w.fail(c, errLost)
			w.nodes[1].startBeat()
			w.flow()
			w.checkComplete()
		})
	}
}

// TestReleaseOfAClientThatMoved: the janitor has seen it at a dead server, and meanwhile it is elsewhere.
func TestReleaseOfAClientThatMoved(t *testing.T) {
	scripted(t, func(w *world) {
		w.clients["ann/c1"].dial(w.nodes[0])
		w.flow()
		w.nodes[0].crash()
		time.Sleep(11 * time.Second)
		w.node("b2").startBeat()
		w.flow()
		for range 2 {
			w.clean(func() { _, _ = w.janitor.ServersRound(backgroundContext) })
			w.until("Release")
		}
		release := w.until("Release")
		w.clients["ann/c1"].dial(w.node("b2"))
		w.until("Release")
		w.express(release)
		w.flow()
		w.checkComplete()
	})
}

// TestLostAnswerOfBindSupersedes: a client has moved, and its new server has not heard so. Whether it comes back there or
// not, the old server must not go on for long as if it had the client.
func TestLostAnswerOfBindSupersedes(t *testing.T) {
	for _, again := range []bool{false, true} {
		scripted(t, func(w *world) {
			w.profile = shaky
			first := w.clients["ann/c1"].dial(w.nodes[0])
			w.flow()
			w.clients["ann/c1"].dial(w.nodes[1])
			bind := w.until("Bind")
			w.execute(bind)
			w.fail(bind, errLost)
			w.flow()
			if again {
				w.clients["ann/c1"].dial(w.nodes[1])
				w.flow()
			}
			w.nodes[1].tick()
			w.flow()
			if first.reason != wire.CloseSuperseded {
				w.violate("%v lost its client and is %q", first, first.reason)
			}
		})
	}
}

// TestLostAnswerOfBindLeavesNobody: the client does not come back, and must not be online.
func TestLostAnswerOfBindLeavesNobody(t *testing.T) {
	for _, op := range []string{"HoldClient", "Bind", "BindUser", "BindChannel"} {
		scripted(t, func(w *world) {
			w.profile = shaky
			w.clients["ann/c1"].dial(w.nodes[0])
			c := w.until(op)
			w.execute(c)
			w.fail(c, errLost)
			w.flow()
			w.disperse()
			w.checkNobody()
		})
	}
}
