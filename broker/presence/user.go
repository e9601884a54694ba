package presence

import (
	"context"
	"sync"

	"switchboard/broker/loop"
	"switchboard/internal/wire"
	"switchboard/registry"
)

// youth is how many seconds a new view reads without a hint: the others learn by this server's beat that there is somebody to
// tell.
const unaidedReads = 5

// UserView is what this server knows of a user that somebody here follows: whether he is online.
type UserView struct {
	p    *Presence
	user string

	refs     int           // guarded by p.mu
	readLock chan struct{} // has a place for one: who reads. Of two reads the later one must count

	mu          sync.Mutex // guards the fields below
	initialized bool       // at least once
	online      bool       // as it was told
	away        int        // seconds since no client of his was found, 0 for online
	age         int        // seconds, up to youth
	dirty       bool       // it must be read
	reading     bool       // a reader is queued or running
	seq         int64      // grows with each change

	perLoop allWatchers
}

// WatchUser begins to follow a user, or joins whoever does. It calls the store, so not from a loop. Each UserView is
// given to Listen or to ReleaseUser once.
func (p *Presence) WatchUser(ctx context.Context, user string) (*UserView, error) {
	p.mu.Lock()
	v := p.users[user]
	if v == nil {
		v = &UserView{p: p, user: user, readLock: make(chan struct{}, 1), perLoop: make(allWatchers, len(p.opts.Loops))}
		p.users[user] = v
	}
	v.refs++
	p.mu.Unlock()
	v.mu.Lock()
	read := v.initialized
	v.mu.Unlock()
	if read {
		return v, nil
	}
	if err := v.readStore(ctx); err != nil {
		p.ReleaseUser(v)
		return nil, err
	}
	return v, nil
}

// ReleaseUser gives back what WatchUser held.
func (p *Presence) ReleaseUser(v *UserView) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if v.refs--; v.refs == 0 && p.users[v.user] == v {
		delete(p.users, v.user)
	}
}

// WatchedUsers is how many users are followed here: others send hints to servers that follow some.
func (p *Presence) WatchedUsers() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.users)
}

// UserChanged says that a client of the user has come or gone, here or elsewhere.
func (p *Presence) UserChanged(user string) {
	p.mu.Lock()
	v := p.users[user]
	p.mu.Unlock()
	if v != nil {
		v.markDirty()
	}
}

func (p *Presence) allUsers() []*UserView {
	p.mu.Lock()
	defer p.mu.Unlock()
	views := make([]*UserView, 0, len(p.users))
	for _, v := range p.users {
		views = append(views, v)
	}
	return views
}

func (v *UserView) markDirty() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.markDirtyLocked()
}

func (v *UserView) markDirtyLocked() {
	v.dirty = true
	if !v.reading {
		v.reading = true
		v.p.opts.Pool.Go(v.runReader)
	}
}

// reader reads until nothing came meanwhile. After a failure the next tick tries again.
func (v *UserView) runReader() {
	for {
		ctx, cancel := v.p.context()
		err := v.readStore(ctx)
		cancel()
		v.mu.Lock()
		if err != nil || !v.dirty {
			v.dirty = err != nil
			v.reading = false
			v.mu.Unlock()
			return
		}
		v.mu.Unlock()
	}
}

// look reads whether the user is online, and tells what has become different. Who has left is told when the grace is over.
func (v *UserView) readStore(ctx context.Context) error {
	v.readLock <- struct{}{}
	defer func() { <-v.readLock }()
	v.mu.Lock()
	v.dirty = false
	v.mu.Unlock()
	bindings, err := v.p.opts.Store.User(ctx, v.user)
	if err != nil {
		return err
	}
	online := v.p.anyLive(bindings)
	v.mu.Lock()
	defer v.mu.Unlock()
	first := !v.initialized
	v.initialized = true
	switch {
	case online:
		v.away = 0
		if !v.online {
			v.setOnline(true, !first)
		}
	case v.online && v.away == 0:
		v.away = 1
	case v.online && v.away > v.p.opts.Grace:
		v.setOnline(false, true)
	}
	return nil
}

func (p *Presence) anyLive(bindings []registry.Binding) bool {
	for _, b := range bindings {
		if b.Server != "" && p.isLive(b.Server) {
			return true
		}
	}
	return false
}

func (v *UserView) setOnline(online, tell bool) {
	v.online, v.seq = online, v.seq+1
	if tell {
		v.perLoop.post(v.p.opts.Loops, []notification{{message: v.p.opts.Messages.Event(v.event())}}, v.seq)
	}
}

func (v *UserView) event() wire.Event {
	kind := wire.TypeLeave
	if v.online {
		kind = wire.TypeJoin
	}
	return wire.Event{Type: kind, Channel: wire.UserChannel + v.user, User: v.user}
}

func (v *UserView) tick() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.away > 0 {
		v.away++
	}
	if v.age++; v.age <= unaidedReads || v.dirty || v.away > v.p.opts.Grace {
		v.age = min(v.age, unaidedReads+1)
		v.markDirtyLocked()
	}
}

// Subscribe begins to tell to of what happens to the user behind this. It runs on l, the connection's loop, and takes over
// what WatchUser held.
func (v *UserView) Subscribe(l *loop.Loop, to Watcher) *Subscription {
	return subscribe(v, &v.perLoop[l.Index], l, to)
}

func (v *UserView) initialEvent() (wire.Event, int64, bool) {
	event, moment := v.snapshotEvent()
	return event, moment, event.Type == wire.TypeJoin
}

func (v *UserView) snapshotEvent() (wire.Event, int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.event(), v.seq
}

func (v *UserView) currentSeq() int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.seq
}

func (v *UserView) release() { v.p.ReleaseUser(v) }
