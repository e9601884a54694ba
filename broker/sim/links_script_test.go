package sim

import (
	"slices"
	"testing"

	"switchboard/internal/wire"
)

// subscribed returns a world with a subscriber of news on the first broker, and the link from the
// second broker to it.
func (w *world) subscribed() *simLink {
	c := w.clients["ann/c1"].dial(w.nodes[0])
	w.runUntilIdle()
	c.subscribe("news", nil)
	w.runUntilIdle()
	i := slices.IndexFunc(w.links, func(k *simLink) bool { return k.from == w.nodes[1] && k.to == w.nodes[0] })
	return w.links[i]
}

// loseHints pushes to news at the sender of a link, and loses the hint.
func (w *world) loseHints(k *simLink) {
	w.push(k.from, "channel", "news")
	for k.Waiting() == 0 && !w.failed() {
		w.settleOne()
	}
	k.Batches(false)
	w.runUntilIdle()
}

// TestHintWithoutLink checks that a hint that was dropped while there was no link shows in the
// number of the next one. The end of the link is no doubt, as the next link comes at once.
func TestHintWithoutLink(t *testing.T) {
	playScript(t, func(w *world) {
		k := w.subscribed()
		w.endLink(k, "breaks")
		w.push(k.from, "channel", "news")
		w.runUntilIdle()
		w.sweepAll()
		w.checkComplete()
	})
}

// TestGoodbyeAfterLostHint checks that a goodbye has the number of all hints. No later check of the
// broker finds the message.
func TestGoodbyeAfterLostHint(t *testing.T) {
	playScript(t, func(w *world) {
		k := w.subscribed()
		w.loseHints(k)
		w.sayGoodbye(k.from)
		k.from.crash()
		w.sweepAll()
		w.checkComplete()
	})
}

// TestLastCheck checks that a message arrives that the store appends after its broker was killed,
// and after the others have compared their queues for that reason: they compare once more when the
// broker is removed from the list.
func TestLastCheck(t *testing.T) {
	playScript(t, func(w *world) {
		w.profile = shaky
		k := w.subscribed()
		killed, id := k.from, k.from.serverID()
		w.push(killed, "channel", "news")
		late := w.runUntil("AppendChannel")
		killed.crash()
		w.removeCall(late) // on its way
		for range 12 {     // the lease ends after 10 s
			w.waitTwoSeconds()
		}
		w.calls = append(w.calls, late)
		w.executeAndAnswer(late)
		w.waitTwoSeconds() // nothing shows that there is a message
		if err := w.registry.Leave(t.Context(), id); err != nil {
			w.violate("%v", err)
		}
		for range 2 {
			w.waitTwoSeconds()
		}
		w.checkComplete()
	})
}

// TestUnknownServerMissesHint sends a hint to all servers while one of them is not known yet: the
// client's earlier connection there must be closed after a sweep.
func TestUnknownServerMissesHint(t *testing.T) {
	playScript(t, func(w *world) {
		w.profile = shaky
		w.nodes[0].crash()
		late := w.boot("b1")
		w.runLeaseCalls()
		w.runUntilIdle()
		first := w.clients["ann/c1"].dial(late)
		w.runUntilIdle()
		other := w.node("b2")
		w.clients["ann/c1"].dial(other) // which has not heard of the new server
		bind := w.runUntil("Bind")
		w.execute(bind)
		w.fail(bind, errLost)
		w.runUntilIdle()
		other.tick() // it looks which binding the store has, and sends the hint to all servers
		w.runUntilIdle()
		other.startBeat()
		w.runUntilIdle()
		w.sweepAll()
		if first.state != ended {
			w.violate("%v lost its client, and is not closed", first)
		}
	})
}

// TestPlannedEnd ends a broker with clients as planned: they are asked to reconnect, what the
// broker stored arrives without a comparison, its members are gone, and the store has nothing of
// it.
func TestPlannedEnd(t *testing.T) {
	playScript(t, func(w *world) {
		w.meet()
		ending, other := w.nodes[0], w.nodes[1]
		w.connectOnFirst()
		stays := w.clients["ann/c1"].dial(other)
		w.runUntilIdle()
		stays.subscribeAnd("news", nil, true)
		w.runUntilIdle()
		stays.watchPresence("news") // reads the members
		w.runUntilIdle()
		w.push(ending, "channel", "news")
		id := ending.serverID()
		if !w.endAsPlanned(ending, nil) {
			w.violate("%s says no goodbye", id)
		}
		for _, c := range w.conns {
			if c.node == ending && c.reason != wire.CloseDraining && c.reason != wire.CloseSuperseded {
				w.violate("%v is closed as %q", c, c.reason)
			}
		}
		w.runUntilIdle() // no sweep
		w.checkComplete()
		w.checkAllRosters()
		w.checkNothingHeld(t.Context(), id)
		for _, channel := range append(channelNames, wire.AllChannel) {
			if servers, _ := w.registry.ChannelServers(t.Context(), channel); slices.Contains(servers, id) {
				w.violate("%s has %s", channel, id)
			}
		}
		if listed, _ := w.registry.Listed(t.Context()); slices.Contains(listed, id) {
			w.violate("%s is listed", id)
		}
		other.startBeat()
		w.runUntilIdle()
		if doubts, _ := other.Doubts(); len(doubts) > 0 {
			w.violate("%s doubts %v", other.machine, doubts)
		}
	})
}

// TestEndAfterLostAnswer ends a broker as planned while a bind has an unknown outcome. The broker
// must not leave: the janitor would not find the client.
func TestEndAfterLostAnswer(t *testing.T) {
	playScript(t, func(w *world) {
		w.profile = shaky
		w.meet()
		ending := w.nodes[0]
		w.clients["ann/c1"].dial(ending)
		bind := w.runUntil("Bind")
		w.execute(bind)
		w.fail(bind, errLost)
		w.runUntilIdle()
		w.endAsPlanned(ending, nil)
		w.disconnectAll()
		w.checkNothingLeft()
	})
}
