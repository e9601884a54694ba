package sim

import (
	"context"
	"slices"
	"testing"

	"switchboard/internal/slots"
	"switchboard/internal/wire"
)

// masters is the number of masters that the simulated store has.
const masters = 3

// masterOf returns the master that has the keys of a name.
func masterOf(name string) int { return slots.Of(name) * masters / slots.Count }

// slotsOf returns the slots of a master.
func slotsOf(master int) (of slots.Set) {
	for slot := range slots.Count {
		if slot*masters/slots.Count == master {
			of.Add(slot, slot)
		}
	}
	return of
}

// failOver lets a master fail over. The new master has lost some of the bindings: in the servers of
// channels, the records of clients, and the lists of users. All brokers learn
// of it with their next connection, so before the next of their calls.
func (w *world) failOver(master int, lost func() bool) {
	w.log("master %d fails over", master)
	ctx := context.Background()
	for _, channel := range append(slices.Clone(channelNames), wire.AllChannel) {
		servers, _ := w.registry.ChannelServers(ctx, channel)
		slices.Sort(servers)
		for _, server := range servers {
			if masterOf(channel) == master && lost() {
				w.log("it has lost server %s of channel %s", server, channel)
				_ = w.registry.UnbindChannel(ctx, server, channel)
			}
		}
	}
	for _, name := range w.names {
		r := w.model.readRecord(subject{client: name})
		user := w.clients[name].user
		if masterOf(name) == master && r.Server != "" && lost() {
			w.log("it has lost the record of %s at %s", name, r.Server)
			_, _, _, _ = w.queue.Release(ctx, name, r.Server)
		}
		if user != "" && masterOf(user) == master && r.entry.Server != "" && lost() {
			w.log("it has lost the entry of %s at %s", name, r.entry.Server)
			_, _ = w.registry.ReleaseUser(ctx, user, name, r.entry.Generation)
		}
	}
	w.loseWatches(func(user string) bool { return masterOf(user) == master })
	of := slotsOf(master)
	for _, n := range w.nodes {
		n.member.Changed(&of)
	}
}

// all loses everything.
func all() bool { return true }

// TestFailoverOfOneMaster checks that after a failover everything in the slots of the master is
// bound and read again, though hints were not sent meanwhile.
func TestFailoverOfOneMaster(t *testing.T) {
	for master := range masters {
		playScript(t, func(w *world) {
			w.runUntilIdle()
			w.connectOnFirst()
			w.failOver(master, all)
			w.pushAll() // some of them find no owner
			w.nodes[0].startBeat()
			w.runUntilIdle()
			w.checkComplete()
			w.pushAll()
			w.checkComplete()
			w.disconnectAll()
			w.checkNothingLeft()
		})
	}
}

// TestFailoverDuringRebind lets a master fail over for the second time, while the answers are on
// their way that were read after the first time. An id from before a failover says nothing after
// it.
func TestFailoverDuringRebind(t *testing.T) {
	for _, op := range []string{"BindChannel", "ReadChannel", "ChannelHead", "ClientHead", "UsersHave", "Refresh", "HoldClient"} {
		for master := range masters {
			playScript(t, func(w *world) {
				w.runUntilIdle()
				w.connectOnFirst()
				w.failOver(master, all)
				w.nodes[0].startBeat()
				read := w.runUntil(op)
				if read != nil {
					w.execute(read)
				}
				w.failOver(master, all)
				w.pushAll()
				if read != nil && !w.failed() {
					w.answer(read)
				}
				w.runUntilIdle()
				w.nodes[0].startBeat()
				w.runUntilIdle()
				w.checkComplete()
			})
		}
	}
}

// TestLateUnbind executes an unbind without an answer after the channel was bound again. No beat
// fails, so only the call itself is a reason to compare the channel.
func TestLateUnbind(t *testing.T) {
	playScript(t, func(w *world) {
		w.profile = shaky
		c := w.clients["ann/c1"].dial(w.nodes[0])
		w.runUntilIdle()
		c.subscribe("news", nil)
		w.runUntilIdle()
		c.unsubscribe("news")
		w.runUntilIdle()
		w.nodes[0].tick()
		unbind := w.runUntil("UnbindChannel")
		unbind.answer <- result{nil, errLost}
		unbind.orphan = true
		c.subscribe("news", nil)
		w.runUntil("UnbindChannel")
		w.executeAndAnswer(unbind)
		w.nodes[0].startBeat()
		w.runUntilIdle()
		w.push(w.nodes[1], "channel", "news")
		w.runUntilIdle()
		w.checkComplete()
	})
}

// connectOnFirst connects all clients to the first broker, and subscribes them to all channels.
func (w *world) connectOnFirst() {
	for _, name := range w.names {
		c := w.clients[name].dial(w.nodes[0])
		w.runUntilIdle()
		for _, channel := range channelNames {
			c.subscribe(channel, nil)
			w.runUntilIdle()
		}
	}
}
