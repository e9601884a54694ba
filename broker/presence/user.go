package presence

import (
	"context"
	"slices"
	"sync"
	"time"

	"switchboard/broker/loop"
	"switchboard/internal/wire"
	"switchboard/registry"
)

// initialReads is how long a new view reads the store every second, in seconds, if servers of
// former versions may be live. It may receive no hints from them in this time: they learn only from
// this server's next beat that it watches users.
const initialReads = 5

// UserView is this server's view of a watched user: whether the user is online.
type UserView struct {
	p    *Presence
	user string

	refs     int           // guarded by p.mu
	readLock chan struct{} // one slot, held during a read of the store, so that a later read is applied last

	mu          sync.Mutex         // guards the fields below
	initialized bool               // read at least once
	servers     []string           // those that have clients of the user, live or not; sorted
	online      bool               // as the watchers know it
	awaySeconds int                // time since an online user lost the last connection; 0 if the user is connected or offline
	age         int                // seconds, at most initialReads+1
	dirty       bool               // the store must be read
	reading     bool               // a reader is queued or running
	inFlight    bool               // a read of the store has begun and is not applied yet
	seq         int64              // grows with each change
	watched     registry.UserWatch // this server's registration in the store; zero for none
	renewedAt   time.Time          // when the registration was made or renewed
	mustWatch   bool               // the store may have lost it, or this server has a new id

	perLoop allWatchers // not guarded by mu: each loop uses its own entry
}

// WatchUser returns the view of a user. It calls the store, so do not call it on a loop. Pass each
// UserView once, to Subscribe or to ReleaseUser.
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
	initialized := v.initialized
	v.mu.Unlock()
	if initialized {
		return v, nil
	}
	if err := v.readStore(ctx); err != nil {
		p.ReleaseUser(v)
		return nil, err
	}
	return v, nil
}

// ReleaseUser gives up a view that WatchUser returned.
func (p *Presence) ReleaseUser(v *UserView) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if v.refs--; v.refs == 0 && p.users[v.user] == v {
		delete(p.users, v.user)
		v.mu.Lock()
		defer v.mu.Unlock()
		p.unwatchLocked(v.watched)
	}
}

// WatchedUsers returns how many users are watched here. Servers of former versions send user hints
// only to servers that watch some.
func (p *Presence) WatchedUsers() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.users)
}

// UserChanged reports that a client of the user has connected or disconnected, on any server.
func (p *Presence) UserChanged(user string) {
	if v := p.userView(user); v != nil {
		v.markDirty()
	}
}

// userView returns the view of a user, nil if there is none.
func (p *Presence) userView(user string) *UserView {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.users[user]
}

func (p *Presence) allUserViews() []*UserView {
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

// runReader reads until the view is clean. After a failure the next tick tries again.
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

// readStore reads whether the user is online and publishes a change. A user goes offline only after
// the grace period.
func (v *UserView) readStore(ctx context.Context) error {
	v.readLock <- struct{}{}
	defer func() { <-v.readLock }()
	v.mu.Lock()
	v.dirty, v.inFlight = false, true
	v.mu.Unlock()
	err := v.register(ctx)
	var bindings []registry.Binding
	if err == nil {
		bindings, err = v.p.opts.Store.User(ctx, v.user)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.inFlight = false
	if err != nil {
		return err
	}
	v.servers = serversOf(bindings)
	// Under mu: if the set of live servers changes now, markDirtyIfOn sees the servers.
	online := slices.ContainsFunc(v.servers, v.p.isLive)
	first := !v.initialized
	v.initialized = true
	switch {
	case online:
		v.awaySeconds = 0
		if !v.online {
			v.setOnlineLocked(true, !first)
		}
	case v.online && v.awaySeconds == 0:
		v.awaySeconds = 1
	case v.online && v.awaySeconds > v.p.opts.Grace:
		v.awaySeconds = 0 // otherwise each tick would read the store again
		v.setOnlineLocked(false, true)
	}
	return nil
}

// serversOf returns the servers of the bindings, sorted.
func serversOf(bindings []registry.Binding) []string {
	var servers []string
	for _, b := range bindings {
		if b.Server != "" {
			servers = append(servers, b.Server)
		}
	}
	slices.Sort(servers)
	return slices.Compact(servers)
}

// setOnlineLocked sets the state and, if publish is true, sends it to the watchers.
func (v *UserView) setOnlineLocked(online, publish bool) {
	v.online, v.seq = online, v.seq+1
	if publish {
		v.perLoop.post(v.p.opts.Loops, []notification{{message: v.p.opts.Messages.Event(v.eventLocked())}}, v.seq)
	}
}

func (v *UserView) eventLocked() wire.Event {
	kind := wire.TypeLeave
	if v.online {
		kind = wire.TypeJoin
	}
	return wire.Event{Type: kind, Channel: wire.UserChannelPrefix + v.user, User: v.user}
}

// tick returns whether the registration is due to be renewed.
func (v *UserView) tick() (due bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.awaySeconds > 0 {
		v.awaySeconds++
	}
	if v.age <= initialReads {
		v.age++
	}
	if v.dirty || v.awaySeconds > v.p.opts.Grace || v.age <= initialReads && v.p.opts.HasFormer() {
		v.markDirtyLocked()
	}
	if due = v.watched.Number != 0 && time.Since(v.renewedAt) >= v.p.opts.Renewal; due {
		v.renewedAt = time.Now() // it is asked for once
	}
	return due
}

// Subscribe adds a watcher, which receives all later changes. It runs on l, the watcher's loop, and
// takes over the reference that WatchUser returned.
func (v *UserView) Subscribe(l *loop.Loop, w Watcher) *Subscription {
	return subscribe(v, &v.perLoop[l.Index], l, w)
}

func (v *UserView) initialEvent() (wire.Event, int64, bool) {
	event, seq := v.snapshotEvent()
	return event, seq, event.Type == wire.TypeJoin
}

func (v *UserView) snapshotEvent() (wire.Event, int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.eventLocked(), v.seq
}

func (v *UserView) currentSeq() int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.seq
}

func (v *UserView) release() { v.p.ReleaseUser(v) }
