package presence

import (
	"fmt"
	"slices"
	"testing"

	"switchboard/broker/dialect"
	"switchboard/internal/wire"
)

// watcher is a connection that believes what it is told.
type testWatcher struct {
	t          *testing.T
	name       string
	knows      map[string]bool
	count      int  // what it was told together, else -1
	backlogged bool // belongs to the loop, as the rest, while anything is under way
	resuming   bool // it is being told what it missed
	view       *View
	sub        *Subscription
}

// watch has a connection follow the room from now on.
func (n *node) watch(name string) *testWatcher {
	n.w.t.Helper()
	v, err := n.Watch(n.w.t.Context(), testChannel)
	n.w.check(err)
	o := &testWatcher{t: n.w.t, name: name, view: v, count: -1}
	l := n.loops[len(name)%2]
	done := make(chan struct{})
	l.Post(func() {
		o.sub = v.Subscribe(l, o)
		o.loadView()
		close(done)
	})
	<-done
	return o
}

// read learns who is there.
func (o *testWatcher) loadView() {
	o.view.mu.Lock()
	defer o.view.mu.Unlock()
	o.knows = map[string]bool{}
	for _, m := range o.view.members.list() {
		o.knows[m.Client] = true
	}
	delete(o.knows, o.name)
	o.sub.seq = o.view.members.seq
}

// block has its socket be backed up, or not.
func (o *testWatcher) setBacklogged(full bool) {
	done := make(chan struct{})
	o.sub.loop.Post(func() {
		o.backlogged, o.resuming = full, !full
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
	case wire.TypePresence:
		o.count = *e.Count
		if e.Clients != nil {
			clear(o.knows)
			for _, m := range *e.Clients {
				o.knows[m.Client] = true
			}
			delete(o.knows, o.name)
		} else if o.resuming {
			o.loadView()
		} else if len(e.Joined)+len(e.Left) == 0 {
			o.t.Errorf("%s is told %+v", o.name, e)
		}
		for _, m := range e.Left {
			o.left(m.Client)
		}
		for _, m := range e.Joined {
			o.joined(m.Client)
		}
	default:
		o.t.Errorf("told %+v", e)
	}
}

func (o *testWatcher) joined(client string) {
	if o.knows[client] || client == o.name {
		o.t.Errorf("%s is told twice that %s came", o.name, client)
	}
	o.knows[client] = true
}

func (o *testWatcher) left(client string) {
	if !o.knows[client] {
		o.t.Errorf("%s is told that %s went, who was not there", o.name, client)
	}
	delete(o.knows, client)
}

// believes compares what the watcher was told with the truth.
func (o *testWatcher) expect(truth []string) {
	o.t.Helper()
	var list []string
	for client := range o.knows {
		list = append(list, client)
	}
	slices.Sort(list)
	truth = slices.DeleteFunc(slices.Clone(truth), func(client string) bool { return client == o.name })
	if fmt.Sprint(list) != fmt.Sprint(truth) {
		o.t.Errorf("%s was told that there are %v; there are %v", o.name, list, truth)
	}
}
