package presence

import (
	"fmt"
	"slices"
	"testing"

	"switchboard/internal/wire"
)

// watcher is a connection that believes what it is told.
type watcher struct {
	t     *testing.T
	name  string
	knows map[string]bool
	count int  // what it was told together, else -1
	full  bool // belongs to the loop, as the rest, while anything is under way
	waked bool // it is being told what it missed
	view  *View
	sub   *Subscription
}

// watch has a connection follow the room from now on.
func (n *node) watch(name string) *watcher {
	n.w.t.Helper()
	v, err := n.Watch(n.w.t.Context(), room)
	n.w.check(err)
	o := &watcher{t: n.w.t, name: name, view: v, count: -1}
	l := n.loops[len(name)%2]
	done := make(chan struct{})
	l.Post(func() {
		o.sub = v.Subscribe(l, o)
		o.read()
		close(done)
	})
	<-done
	return o
}

// read learns who is there.
func (o *watcher) read() {
	o.view.mu.Lock()
	defer o.view.mu.Unlock()
	o.knows = map[string]bool{}
	for _, m := range o.view.crowd.members() {
		o.knows[m.Client] = true
	}
	delete(o.knows, o.name)
	o.sub.told = o.view.crowd.moment
}

// block has its socket be backed up, or not.
func (o *watcher) block(full bool) {
	done := make(chan struct{})
	o.sub.loop.Post(func() {
		o.full, o.waked = full, !full
		o.sub.Resume()
		o.waked = false
		close(done)
	})
	<-done
}

func (o *watcher) Client() string   { return o.name }
func (o *watcher) Backlogged() bool { return o.full }

func (o *watcher) Write(b *wire.Batch) {
	for _, f := range b.Frames {
		e, err := wire.DecodeEvent(f.JSON())
		if err != nil {
			o.t.Errorf("%s: %v", f.JSON(), err)
		}
		switch e.Type {
		case wire.TypeJoin:
			o.come(e.Client)
		case wire.TypeLeave:
			o.go_(e.Client)
		case wire.TypePresence:
			o.count = *e.Count
			if e.Clients != nil {
				clear(o.knows)
				for _, m := range *e.Clients {
					o.knows[m.Client] = true
				}
				delete(o.knows, o.name)
			} else if o.waked {
				o.read()
			} else if len(e.Joined)+len(e.Left) == 0 {
				o.t.Errorf("%s is told %s", o.name, f.JSON())
			}
			for _, m := range e.Left {
				o.go_(m.Client)
			}
			for _, m := range e.Joined {
				o.come(m.Client)
			}
		default:
			o.t.Errorf("told %s", f.JSON())
		}
	}
}

func (o *watcher) come(client string) {
	if o.knows[client] || client == o.name {
		o.t.Errorf("%s is told twice that %s came", o.name, client)
	}
	o.knows[client] = true
}

func (o *watcher) go_(client string) {
	if !o.knows[client] {
		o.t.Errorf("%s is told that %s went, who was not there", o.name, client)
	}
	delete(o.knows, client)
}

// believes compares what the watcher was told with the truth.
func (o *watcher) believes(truth []string) {
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
