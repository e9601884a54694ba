package main

import (
	"bufio"
	"encoding/json"
	"net"
	"testing"
	"time"

	"switchboard/internal/await"
	"switchboard/internal/testbed"
	"switchboard/internal/wire"
)

// scriptedBroker is the broker of one watcher of the channel "room". The test says what it answers.
type scriptedBroker struct {
	t        *testing.T
	listener *net.TCPListener
	conn     net.Conn
	in       *bufio.Reader
	watcher  *watcher
}

func newScriptedBroker(t *testing.T) *scriptedBroker {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	b := &scriptedBroker{t: t, listener: listener}
	b.watcher = newWatcher("w", &testbed.Broker{Program: testbed.Program{Name: "b0"}, TCP: listener.Addr().String()}, []string{"room"}, newPresenceJournal())
	b.watcher.start(t.Context())
	t.Cleanup(b.watcher.stop)
	return b
}

// accept accepts the next connection of the watcher, and confirms its subscription.
func (b *scriptedBroker) accept() {
	b.t.Helper()
	deadline := time.Now().Add(await.Timeout) // otherwise a failure would block the test
	err := b.listener.SetDeadline(deadline)
	if err == nil {
		b.conn, err = b.listener.Accept()
	}
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { b.conn.Close() })
	if err := b.conn.SetDeadline(deadline); err != nil {
		b.t.Fatal(err)
	}
	b.in = bufio.NewReader(b.conn)
	b.answer(wire.TypeConnect, wire.Event{Type: wire.TypeConnected})
	b.answer(wire.TypeSubscribe, wire.Event{Type: wire.TypeSubscribed, Channel: "room"})
}

// answer reads the next request, which must be of the kind, and answers it.
func (b *scriptedBroker) answer(kind string, ev wire.Event) {
	b.t.Helper()
	line, err := b.in.ReadBytes('\n')
	if err != nil {
		b.t.Fatal(err)
	}
	var req wire.Request
	if err := json.Unmarshal(line, &req); err != nil || req.Type != kind {
		b.t.Fatalf("request %s, want one of type %s", line, kind)
	}
	ev.Ref = req.Ref
	b.send(ev)
}

func (b *scriptedBroker) send(ev wire.Event) {
	b.t.Helper()
	line, err := json.Marshal(ev)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.conn.Write(append(line, '\n')); err != nil {
		b.t.Fatal(err)
	}
}

// page returns an answer with all members.
func page(clients ...string) wire.Event {
	list, count := membersOf(clients...), len(clients)
	return wire.Event{Type: wire.TypePresence, Channel: "room", Clients: &list, Count: &count}
}

// changed returns an event of a large channel.
func changed(joined ...string) wire.Event {
	count := 300
	return wire.Event{Type: wire.TypePresence, Channel: "room", Count: &count, Joined: membersOf(joined...)}
}

func membersOf(clients ...string) (list []wire.Member) {
	for _, client := range clients {
		list = append(list, wire.Member{Client: client})
	}
	return list
}

// awaitEvents waits until the journal has n events, and checks how many of them are repeats.
func (b *scriptedBroker) awaitEvents(n, repeated int) {
	b.t.Helper()
	await.True(b.t, "all events have arrived", func() bool { got, _ := b.watcher.journal.totals(); return got == n })
	if _, got := b.watcher.journal.totals(); got != repeated {
		b.t.Errorf("%d repeated events, want %d: %v", got, repeated, b.watcher.journal.evidence)
	}
}

// TestWatcherOfALargeChannel plays the events of a large channel that fills: more clients come than
// one event names, the watcher reads the members again, and the page shows a client whose event is
// still to be sent. That event is no repeat, and the view is settled only by the marker's.
func TestWatcherOfALargeChannel(t *testing.T) {
	b := newScriptedBroker(t)
	journal, marker := b.watcher.journal, wire.ClientID(markerName, markerName)
	b.accept()
	b.answer(wire.TypePresence, page("w/w"))
	b.send(changed()) // too many clients to name them
	b.answer(wire.TypePresence, page("u/a", "u/b", "w/w"))
	await.True(t, "the members are known", func() bool { _, known := journal.members(viewKey{"w", "room"}); return known })
	s := journal.newSettlement(true)
	if waiting := journal.settle(s); len(waiting) != 1 || journal.isSettled() {
		t.Errorf("settled by a page: %v wait", waiting)
	}
	b.send(changed("u/b"))
	b.awaitEvents(1, 0)
	if waiting := journal.settle(s); len(waiting) != 1 || journal.isSettled() {
		t.Errorf("settled by an event: %v wait", waiting)
	}
	b.send(changed(marker))
	b.awaitEvents(2, 0)
	if waiting := journal.settle(s); len(waiting) != 0 || !journal.isSettled() {
		t.Errorf("not settled by the event about the marker: %v wait", waiting)
	}
	b.send(changed("u/a", "u/b"))
	b.awaitEvents(4, 2)
}

// TestWatcherReconnectsAfterAFailedPage refuses the pages after an event without names. Without
// them the watcher knows nothing more, so it connects again.
func TestWatcherReconnectsAfterAFailedPage(t *testing.T) {
	b := newScriptedBroker(t)
	b.accept()
	b.answer(wire.TypePresence, page("w/w"))
	b.send(changed())
	b.answer(wire.TypePresence, wire.Event{Type: wire.TypeError, Code: string(wire.RateLimited), Message: "later"})
	b.accept()
	b.answer(wire.TypePresence, page("u/a", "w/w"))
	await.True(t, "the members are known", func() bool { _, known := b.watcher.journal.members(viewKey{"w", "room"}); return known })
}
