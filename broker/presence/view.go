package presence

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"

	"switchboard/registry"
)

// unknownVersion is the version of a roster that must be read. No update is based on it.
const unknownVersion = -1

// maxRecorded bounds the updates that are recorded while rosters are read.
const maxRecorded = 64

// View is this server's view of a channel's members on all servers. It exists while the channel has
// watchers here.
type View struct {
	p       *Presence
	channel string

	refs int // guarded by p.mu: subscriptions, including those that are being prepared

	// bindLock is held during each binding and unbinding of the view, and while a reader runs. It is
	// a Go channel of one slot, not a mutex, because it is held over store calls.
	bindLock       chan struct{}
	bound          bool   // guarded by bindLock: the store lists this server as watching, and the rosters were read
	releaseChannel func() // guarded by bindLock: releases the channel; nil if it is not held

	mu           sync.Mutex         // guards the fields below
	rosters      map[string]*roster // copies of the stored rosters, by server
	seenVersions map[string]int64   // highest version seen, by live server; it stays while the roster is empty
	dirty        map[string]bool    // servers whose roster must be read
	allDirty     bool               // all rosters must be read
	watchAgain   bool               // WatchPresence must be called again: the store may have lost it
	reading      bool               // a reader is queued or running
	recording    bool               // updates are recorded, because rosters are being read
	recorded     []rosterUpdate     // the updates since recording began
	members      memberSet

	aliased atomic.Bool // the channel shows aliases; set under mu

	hereForgotten int64 // the newest end of a here value that was forgotten: see hereTTL

	perLoop allWatchers // not guarded by mu: each loop uses its own entry
}

// roster is a copy of one server's roster.
type roster struct {
	version int64
	members map[string]registry.Member // by client
}

// Watch returns the view of a channel. It calls the store, so do not call it on a loop. Pass each
// View once, to Subscribe or to Release.
func (p *Presence) Watch(ctx context.Context, channel string) (*View, error) {
	v := p.getOrCreate(channel)
	if err := v.bind(ctx); err != nil {
		p.Release(v)
		return nil, err
	}
	return v, nil
}

// getOrCreate returns the view with one more reference. It creates the view if needed.
func (p *Presence) getOrCreate(channel string) *View {
	p.mu.Lock()
	defer p.mu.Unlock()
	v := p.views[channel]
	if v == nil {
		v = &View{
			p: p, channel: channel, bindLock: make(chan struct{}, 1),
			rosters: map[string]*roster{}, seenVersions: map[string]int64{}, dirty: map[string]bool{},
			perLoop: make(allWatchers, len(p.opts.Loops)), members: newMemberSet(p.opts.LargeChannel),
		}
		v.aliased.Store(p.showsAliases(channel))
		p.views[channel] = v
	}
	v.refs++
	return v
}

// Release gives up a view that Watch returned. The view stays until the next tick.
func (p *Presence) Release(v *View) {
	p.mu.Lock()
	v.refs--
	p.mu.Unlock()
}

// lockBinding locks bindLock and returns the function that unlocks it.
func (v *View) lockBinding() (unlock func()) {
	v.bindLock <- struct{}{}
	return func() { <-v.bindLock }
}

// bind registers this server as watching the channel and then reads the rosters. In this order, no
// change after the read is missed.
func (v *View) bind(ctx context.Context) error {
	defer v.lockBinding()()
	if v.bound { // by another goroutine
		return nil
	}
	if v.releaseChannel == nil {
		v.releaseChannel = v.p.opts.Hold(v.channel)
	}
	if err := v.p.opts.Store.WatchPresence(ctx, v.p.opts.ServerID(), v.channel); err != nil {
		return err
	}
	v.mu.Lock()
	v.allDirty = true
	v.mu.Unlock()
	if err := v.readOnce(ctx); err != nil {
		return err
	}
	v.bound = true
	v.wakeReader() // for hints that arrived meanwhile
	return nil
}

// unbind removes an unused view. If the store cannot be reached, the next tick tries again.
func (v *View) unbind() {
	defer v.lockBinding()()
	v.p.mu.Lock()
	used := v.refs > 0
	v.p.mu.Unlock()
	if used {
		return
	}
	v.bound = false // from now on Watch waits for bindLock and binds again
	if v.releaseChannel != nil {
		ctx, cancel := v.p.context()
		defer cancel()
		if err := v.p.opts.Store.UnwatchPresence(ctx, v.p.opts.ServerID(), v.channel); err != nil {
			v.p.opts.Logger.Warn().Err(err).Msg("could not stop watching presence; the next tick tries again")
			return
		}
		v.releaseChannel()
		v.releaseChannel = nil
	}
	v.p.mu.Lock()
	defer v.p.mu.Unlock()
	if v.refs == 0 && v.p.views[v.channel] == v {
		delete(v.p.views, v.channel)
	}
}

func (v *View) tick() {
	v.p.mu.Lock()
	used := v.refs > 0
	v.p.mu.Unlock()
	if !used {
		v.p.opts.Pool.Go(v.unbind)
		return
	}
	v.wakeReader() // after a failure
	v.mu.Lock()
	defer v.mu.Unlock()
	v.publishCoalescedLocked()
}

// apply applies an update of a roster.
func (v *View) apply(u rosterUpdate) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.recording {
		if len(v.recorded) < maxRecorded {
			v.recorded = append(v.recorded, u)
		} else {
			v.dirty[u.server] = true
		}
	}
	v.applyLocked(u)
}

func (v *View) applyLocked(u rosterUpdate) {
	have, seen := int64(0), v.seenVersions[u.server]
	if r := v.rosters[u.server]; r != nil {
		have = r.version
	}
	if have == unknownVersion {
		return // it is being read
	}
	v.seenVersions[u.server] = max(seen, u.prev, u.version)
	if !v.p.isLive(u.server) {
		return // it is read when the server is live again
	}
	// An update of an empty roster applies only if its version is new. Otherwise it may be late: the
	// roster may have been filled and emptied since. This server's own updates are never late.
	switch {
	case u.inline && u.prev == have && (have != 0 || u.version == 0 || u.version > seen || u.server == v.p.opts.ServerID()):
		v.applyChangeLocked(u.server, u.version, u.change)
	case u.version != 0 && u.version <= have, u.version == 0 && have == 0: // late
	default:
		v.markDirtyLocked(u.server)
	}
}

// applyChangeLocked applies a change to a server's roster and publishes it.
func (v *View) applyChangeLocked(server string, version int64, c registry.PresenceChange) {
	c = v.hide(c)
	r := v.rosters[server]
	newServer := r == nil || len(r.members) == 0
	if r == nil {
		r = &roster{members: map[string]registry.Member{}}
		v.rosters[server] = r
	}
	r.version = version
	v.members.beginChange()
	for _, m := range c.Join {
		before, known := r.members[m.Client]
		if known && before.Generation > m.Generation {
			continue // the store ignores it too
		}
		r.members[m.Client] = m
		if known {
			v.members.replace(before, m)
		} else {
			v.members.add(m)
		}
	}
	for _, left := range c.Leave {
		if m, known := r.members[left.Client]; known && m.Generation <= left.Generation {
			delete(r.members, left.Client)
			v.members.remove(m)
		}
	}
	if len(r.members) == 0 && version != unknownVersion {
		delete(v.rosters, server)
	}
	v.publishChangeLocked()
	v.changeHereLocked(server, newServer && len(r.members) > 0, c)
}

// markDirtyLocked makes the view read the roster of the server again.
func (v *View) markDirtyLocked(server string) {
	v.dirty[server] = true
	v.wakeReaderLocked()
}

func (v *View) markAllDirty() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.allDirty = true
	v.wakeReaderLocked()
}

// watchAndReread is markAllDirty, and also registers this server as watching again.
func (v *View) watchAndReread() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.allDirty, v.watchAgain = true, true
	v.wakeReaderLocked()
}

// dropDeadServers removes the rosters of servers without a lease.
func (v *View) dropDeadServers() {
	v.mu.Lock()
	defer v.mu.Unlock()
	maps.DeleteFunc(v.seenVersions, func(server string, _ int64) bool { return !v.p.isLive(server) })
	for server, r := range v.rosters {
		if !v.p.isLive(server) {
			v.applyChangeLocked(server, 0, registry.PresenceChange{Leave: membersOf(r)})
		}
	}
}

func membersOf(r *roster) []registry.Member {
	members := make([]registry.Member, 0, len(r.members))
	for _, m := range r.members {
		members = append(members, m)
	}
	return members
}
