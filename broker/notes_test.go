package broker_test

import (
	"net"
	"slices"
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/broker/notes"
	"switchboard/internal/await"
	"switchboard/internal/note"
	"switchboard/internal/redispipe"
	"switchboard/queue"
	"switchboard/registry"
)

// TestNotes checks that a broker lists its notes in its lease and notes a bind, a roster, and the
// messages that it stores, and that all of them are settled when their hints are sent.
func TestNotes(t *testing.T) {
	const beat = 50 * time.Millisecond
	client := shared.Client(t)
	_, prefix := redisStore(t, client, beat)
	journal := notes.NewJournal(client, prefix)
	pipe := redispipe.New(client, redispipe.Options{Journal: journal})
	reg := registry.NewRedis(pipe, registry.Options{Prefix: prefix, Lease: time.Minute})
	s := store{registry: reg, queue: queue.NewRedis(pipe, queue.Options{Prefix: prefix}), shared: true}
	i := start(t, s, func(o *broker.Options) { o.Timing.Beat, o.Store.Notes = beat, journal })
	i.awaitReady(t, 200)
	listed := ""
	await.True(t, "the lease lists the notes", func() bool {
		c, err := reg.Renew(t.Context(), registry.Server{ID: "observer"}, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, server := range c.Changed {
			if server.ID == i.ID() {
				listed = server.Notes
			}
		}
		return listed != ""
	})
	reader := notes.NewReader(notes.NewRedis(client, redispipe.New(client, redispipe.Options{}), prefix))
	var names []note.Name
	read := func(settled uint64) {
		t.Helper()
		var complete bool
		var err error
		if names, _, complete, err = reader.Since(t.Context(), i.ID(), listed, settled); err != nil || !complete {
			t.Errorf("complete: %v, %v", complete, err)
		}
	}
	await.True(t, "notes are written", func() bool { return journal.Ready(prefix + "nt_{0}:" + i.ID()) })
	before := journal.Settled()
	tab := dialLines(t, net.Dialer{}, i.TCP)
	tab.connect("tab", "alice")
	tab.send(`{"type":"subscribe","channel":"room","presence":true,"ref":2}`)
	tab.expect(object{"type": "subscribed"})
	// The second client is bound twice: its id belongs to the first one.
	for _, secret := range []string{"the first of two secrets", "the second of the secrets"} {
		device := dialLines(t, net.Dialer{}, i.TCP)
		device.send(`{"type":"connect","client":"device","secret":%q,"ref":1}`, secret)
		device.expect(object{"type": "connected"})
	}
	i.push(t, `{"channel":"room","data":1}`)
	i.push(t, `{"user":"alice","data":2}`)
	want := []note.Name{
		{Kind: note.Client, Name: "alice/tab"}, {Kind: note.User, Name: "alice"},
		{Kind: note.Roster, Name: "room"}, {Kind: note.Channel, Name: "room"},
	}
	await.True(t, "all is noted", func() bool {
		reader.Forget(i.ID())
		read(before)
		return !slices.ContainsFunc(want, func(n note.Name) bool { return !slices.Contains(names, n) })
	})
	await.True(t, "all is settled", func() bool { read(journal.Settled()); return len(names) == 0 })
}
