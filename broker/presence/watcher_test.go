package presence

import (
	"fmt"
	"slices"
	"testing"

	"switchboard/broker/dialect"
	"switchboard/internal/wire"
)

// testWatcher is a watcher that applies the events that it receives, and checks them. While loops
// run, its fields belong to its loop.
type testWatcher struct {
	t          *testing.T
	name       string
	knows      map[string]bool
	ahead      map[string]bool   // clients that a page has shown differently, until the next event about them
	repeats    int               // events that repeated a page
	here       map[string]string // the here values that it knows, by client
	values     int               // how many events with a here value it has received
	count      int               // the last count of a coalesced event, or -1
	backlogged bool              // the socket is backed up
	resuming   bool              // the next event is a snapshot
	view       *View
	sub        *Subscription
}

// watch subscribes a watcher to the channel.
func (n *node) watch(name string) *testWatcher {
	n.w.t.Helper()
	v, err := n.Watch(n.w.t.Context(), testChannel)
	n.w.check(err)
	o := &testWatcher{t: n.w.t, name: name, view: v, count: -1, ahead: map[string]bool{}, here: map[string]string{}}
	l := n.loops[len(name)%2] // names of different lengths give watchers on both loops
	done := make(chan struct{})
	l.Post(func() {
		o.sub = v.Subscribe(l, o)
		o.loadView()
		close(done)
	})
	<-done
	return o
}

// loadView copies the members from the view.
func (o *testWatcher) loadView() {
	o.view.mu.Lock()
	defer o.view.mu.Unlock()
	o.knows = map[string]bool{}
	clear(o.ahead)
	for _, m := range o.view.members.list() {
		o.knows[m.Client] = true
	}
	delete(o.knows, o.name)
	o.sub.known.seq = o.view.members.seq
}

// readPage replaces what the watcher knows by a page of its subscription.
func (o *testWatcher) readPage() {
	done := make(chan struct{})
	o.sub.loop.Post(func() {
		defer close(done)
		o.readPageOnLoop()
	})
	<-done
}

func (o *testWatcher) readPageOnLoop() {
	page, err := o.sub.Page("", 100)
	if err != nil {
		o.t.Error(err)
	}
	before := o.knows
	o.knows = map[string]bool{}
	for _, m := range page.Members {
		o.knows[m.Client] = true
	}
	delete(o.knows, o.name)
	for client := range before {
		if !o.knows[client] {
			o.ahead[client] = true
		}
	}
	for client := range o.knows {
		if !before[client] {
			o.ahead[client] = true
		}
	}
}

// setBacklogged makes the watcher's socket backed up, or writable.
func (o *testWatcher) setBacklogged(backlogged bool) {
	done := make(chan struct{})
	o.sub.loop.Post(func() {
		o.backlogged, o.resuming = backlogged, !backlogged
		o.sub.Resume()
		o.resuming = false
		close(done)
	})
	<-done
}

func (o *testWatcher) Client() string   { return o.name }
func (o *testWatcher) Backlogged() bool { return o.backlogged }

func (o *testWatcher) Write(b *dialect.Batch) {
	for _, m := range b.Messages {
		o.Send(*m.Event)
	}
}

func (o *testWatcher) Send(e wire.Event) {
	switch e.Type {
	case wire.TypeJoin:
		o.joined(e.Client)
	case wire.TypeLeave:
		o.left(e.Client)
	case wire.TypeHere:
		o.valueChanged(e)
	case wire.TypePresence:
		o.count = *e.Count
		if e.Clients != nil {
			clear(o.knows)
			clear(o.ahead)
			for _, m := range *e.Clients {
				o.knows[m.Client] = true
			}
			delete(o.knows, o.name)
			o.loadValues(*e.Clients)
		} else if o.resuming {
			o.loadView()
		} else if len(e.Joined)+len(e.Left) == 0 {
			o.t.Errorf("%s receives the empty event %+v", o.name, e)
		}
		for _, m := range e.Left {
			o.left(m.Client)
		}
		for _, m := range e.Joined {
			o.joined(m.Client)
		}
	default:
		o.t.Errorf("unknown event %+v", e)
	}
}

// joined applies a join.
func (o *testWatcher) joined(client string) {
	if client == o.name {
		o.t.Errorf("%s receives its own join", o.name)
	}
	o.checkRepeat("join", client, o.knows[client])
	o.knows[client] = true
}

// left applies a leave.
func (o *testWatcher) left(client string) {
	o.checkRepeat("leave", client, !o.knows[client])
	delete(o.knows, client)
	delete(o.here, client)
}

// checkRepeat checks an event that may repeat what the watcher knows. It may do so if it is the
// first one about the client after a page that has shown the client differently than the events
// before.
func (o *testWatcher) checkRepeat(kind, client string, repeats bool) {
	switch {
	case repeats && o.ahead[client]:
		o.repeats++
	case repeats:
		o.t.Errorf("%s receives a second %s of %s", o.name, kind, client)
	}
	delete(o.ahead, client)
}

// expect compares the members that the watcher knows with the actual ones, without itself.
func (o *testWatcher) expect(members []string) {
	o.t.Helper()
	var list []string
	for client := range o.knows {
		list = append(list, client)
	}
	slices.Sort(list)
	members = slices.DeleteFunc(slices.Clone(members), func(client string) bool { return client == o.name })
	if fmt.Sprint(list) != fmt.Sprint(members) {
		o.t.Errorf("%s knows the members %v, want %v", o.name, list, members)
	}
}
