package presence

import (
	"fmt"
	"testing"

	"switchboard/broker/dialect"
	"switchboard/broker/dialect/native"
	"switchboard/broker/loop"
	"switchboard/broker/peer"
	"switchboard/broker/work"
	"switchboard/internal/allocs"
	"switchboard/internal/wire"
	"switchboard/registry"
)

// discard is a watcher that encodes what it receives for a WebSocket.
type discard struct {
	client   string
	form     *dialect.Form
	messages int
	bytes    int
}

func (d *discard) Client() string   { return d.client }
func (d *discard) Backlogged() bool { return false }
func (d *discard) Send(wire.Event)  {}
func (d *discard) Write(b *dialect.Batch) {
	d.messages += len(b.Messages)
	d.bytes += len(b.Bytes(d.form))
}

// hereBench is a channel with n members that watch each other, all on this server and on one loop.
type hereBench struct {
	*Presence
	view     *View
	run      func() // runs the loop
	watchers []*discard
	hints    int // bytes of hints to the other server
	number   int64
}

func newHereBench(t testing.TB, n int) *hereBench {
	b := &hereBench{}
	l := loop.New(0)
	l.Attach(func(run func()) { b.run = run })
	dialects := native.New(0)
	b.Presence = New(Options{
		Messages: dialects, Store: registry.NewMemory(registry.Options{}), Pool: work.New(1), Loops: []*loop.Loop{l},
		ServerID: func() string { return "a" }, HoldsLease: func() bool { return true }, Hold: func(string) func() { return func() {} },
		Notify: func(_ string, h peer.Hint) { b.hints += len(h.Data) },
	})
	b.SetLive(map[string]bool{"a": true, "b": true})
	b.opts.Pool.Wait() // the store does not have the rosters below: they must not be compared with it
	var err error
	if b.view, err = b.Watch(t.Context(), testChannel); err != nil {
		t.Fatal(err)
	}
	var here registry.PresenceChange
	for i := range n {
		client := fmt.Sprintf("user-%03d/tab", i)
		here.Join = append(here.Join, registry.Member{Client: client, User: wire.UserOf(client), Generation: 1})
		o := &discard{client: client, form: &dialect.Form{View: func(m *dialect.Message) []byte { return m.Prepared.WebSocket() }}}
		b.watchers = append(b.watchers, o)
		b.view.Subscribe(l, o)
	}
	there := registry.PresenceChange{Join: []registry.Member{{Client: "user-b/tab", User: "user-b", Generation: 1}}}
	b.view.apply(rosterUpdate{server: "a", version: 1, inline: true, change: here})
	b.view.apply(rosterUpdate{server: "b", version: 1, inline: true, change: there})
	b.run()
	for _, o := range b.watchers { // without the joins
		o.messages, o.bytes = 0, 0
	}
	if err := b.LoadHere(t.Context(), testChannel, "user-000/tab"); err != nil {
		t.Fatal(err)
	}
	return b
}

var benchValue = []byte(`{"x":1024,"y":768}`)

// show sends a new value of each of the first n members, in one batch.
func (b *hereBench) show(n int) {
	h := b.lockHere(testChannel, true)
	for _, o := range b.watchers[:n] {
		v := h.values[o.client]
		if v == nil {
			v = &hereValue{client: o.client, generation: 1}
			h.values[o.client] = v
		}
		h.changeLocked(v, benchValue)
	}
	h.mu.Unlock()
	b.sendHere(testChannel)
	b.run()
}

// receive applies a hint with a new value of the member on the other server.
func (b *hereBench) receive() {
	b.number++
	body := encodeHere([]*hereValue{{client: "user-b/tab", generation: 1, number: b.number, data: benchValue}})[0]
	b.receiveHere(peer.Hint{Kind: peer.Here, Name: testChannel, Data: body})
	b.run()
}

func hereCases(t testing.TB) []allocs.Case {
	two, fifty := newHereBench(t, 2), newHereBench(t, 50)
	idle := newHereBench(t, 1)
	return []allocs.Case{
		// The event, the message and its bytes; the hint, its list and the servers; the list of unsent
		// values; the task of the loop; the changes with their list and batch.
		allocs.Of("one value to a watcher and a server", 11, func() { two.show(1) }),
		allocs.Of("a value of another server to 50 watchers", 10, func() { fifty.receive() }),
		// Three for each value, one for the bytes of each watcher, and about 34 for the lists.
		allocs.Of("50 values to 50 watchers", 50*5, func() { fifty.show(50) }),
		allocs.Of("a leave without values", 0, func() { idle.EndHere("other", "phone", 1) }),
	}
}

func TestHereAllocs(t *testing.T) { allocs.Test(t, hereCases(t)) }
func BenchmarkHere(b *testing.B)  { allocs.Bench(b, hereCases(b)) }

// TestHereBytes checks how many bytes a value takes on a WebSocket and on a link.
func TestHereBytes(t *testing.T) {
	b := newHereBench(t, 2)
	b.show(1)
	if n := b.watchers[1].bytes; n != 2+len(`{"type":"here","client":"user-000/tab","user":"user-000","channel":"room","data":}`)+len(benchValue) {
		t.Errorf("an event has %d bytes", n)
	}
	if b.watchers[0].messages > 0 || b.watchers[1].messages != 1 {
		t.Errorf("%d and %d messages were delivered", b.watchers[0].messages, b.watchers[1].messages)
	}
	if most := len("user-000/tab") + len(benchValue) + 12; b.hints > most || b.hints == 0 {
		t.Errorf("a hint has %d bytes, want at most %d", b.hints, most)
	}
}
