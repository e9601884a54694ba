package presence

import (
	"context"
	"maps"
	"sync"

	"switchboard/registry"
)

// unknown is the version of a roster that must be read: no change follows on it.
const unknownVersion = -1

// maxDuring bounds the updates that are kept while a roster is read.
const maxRecorded = 64

// View is what this server knows of a channel's clients on all servers, while somebody here follows it.
type View struct {
	p       *Presence
	channel string

	refs int // guarded by p.mu: subscriptions, and whoever is about to be one

	// binding has a place for one: who binds or unbinds. It is no mutex because it is held over store calls.
	bindLock       chan struct{}
	bound          bool   // guarded by binding: the store names us, and the rosters have been read once
	releaseChannel func() // guarded by binding: of the channel, nil for not held

	mu           sync.Mutex // guards the fields below
	rosters      map[string]*roster
	seenVersions map[string]int64 // by live server: versions up to here say nothing new, also when nobody is left in the roster
	dirty        map[string]bool  // servers whose roster must be read
	allDirty     bool             // all rosters must be read
	watchAgain   bool             // the watch must be repeated: the store may have lost it
	reading      bool             // a reader is queued or running
	recording    bool             // the store is being read
	recorded     []rosterUpdate   // come since then
	members      memberSet

	perLoop allWatchers
}

// roster is one server's, as far as it is known.
type roster struct {
	version int64
	members map[string]registry.Member // by client
}

// Watch begins to follow a channel, or joins whoever does. It calls the store, so not from a loop. Each View is given to
// Listen or to Release once.
func (p *Presence) Watch(ctx context.Context, channel string) (*View, error) {
	v := p.hold(channel)
	if err := v.bind(ctx); err != nil {
		p.Release(v)
		return nil, err
	}
	return v, nil
}

func (p *Presence) hold(channel string) *View {
	p.mu.Lock()
	defer p.mu.Unlock()
	v := p.views[channel]
	if v == nil {
		v = &View{
			p: p, channel: channel, bindLock: make(chan struct{}, 1),
			rosters: map[string]*roster{}, seenVersions: map[string]int64{}, dirty: map[string]bool{},
			perLoop: make(allWatchers, len(p.opts.Loops)), members: newMemberSet(p.opts.LargeChannel),
		}
		p.views[channel] = v
	}
	v.refs++
	return v
}

// Release gives back what Watch held. The view stays for a tick.
func (p *Presence) Release(v *View) {
	p.mu.Lock()
	v.refs--
	p.mu.Unlock()
}

func (v *View) lockBinding() (done func()) {
	v.bindLock <- struct{}{}
	return func() { <-v.bindLock }
}

// ready has the store name us, and reads who is there. In this order: whoever comes behind the reading is told.
func (v *View) bind(ctx context.Context) error {
	defer v.lockBinding()()
	if v.bound { // by somebody before us
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
	v.wakeReader() // for what came meanwhile
	return nil
}

// unbind gives up a view that nobody needs. When the store cannot be reached the next tick tries again.
func (v *View) unbind() {
	defer v.lockBinding()()
	v.p.mu.Lock()
	used := v.refs > 0
	v.p.mu.Unlock()
	if used {
		return
	}
	v.bound = false // who comes from now on waits for his turn and binds it anew
	if v.releaseChannel != nil {
		ctx, cancel := v.p.context()
		defer cancel()
		if err := v.p.opts.Store.UnwatchPresence(ctx, v.p.opts.ServerID(), v.channel); err != nil {
			v.p.opts.Logger.Warn().Err(err).Msg("presence still followed; the next tick tries again")
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
	v.publishCoalesced()
}

// apply takes a change of a roster.
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
		return // it is read when it is
	}
	// Who is said to be the first in an empty roster may have left again before it was read, unless we wrote it ourselves.
	switch {
	case u.complete && u.prev == have && (have != 0 || u.version == 0 || u.version > seen || u.server == v.p.opts.ServerID()):
		v.applyChange(u.server, u.version, u.change)
	case u.version != 0 && u.version <= have, u.version == 0 && have == 0: // late
	default:
		v.markDirtyLocked(u.server)
	}
}

// change applies what has changed in a server's roster, and tells of it.
func (v *View) applyChange(server string, version int64, c registry.PresenceChange) {
	r := v.rosters[server]
	if r == nil {
		r = &roster{members: map[string]registry.Member{}}
		v.rosters[server] = r
	}
	r.version = version
	v.members.beginChange()
	for _, m := range c.Join {
		before, known := r.members[m.Client]
		if known && before.Generation > m.Generation {
			continue // as in the store
		}
		r.members[m.Client] = m
		if known {
			v.members.replace(before, m)
		} else {
			v.members.add(m)
		}
	}
	for _, gone := range c.Leave {
		if m, known := r.members[gone.Client]; known && m.Generation <= gone.Generation {
			delete(r.members, gone.Client)
			v.members.remove(m)
		}
	}
	if len(r.members) == 0 && version != unknownVersion {
		delete(v.rosters, server)
	}
	v.publishChange()
}

// suspect has the rosters of some servers read again.
func (v *View) markDirty(servers ...string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range servers {
		v.markDirtyLocked(s)
	}
}

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

// rebind is suspectAll, and has the store name us again.
func (v *View) watchAndReread() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.allDirty, v.watchAgain = true, true
	v.wakeReaderLocked()
}

// dropDead forgets what servers without a lease had.
func (v *View) dropDeadServers() {
	v.mu.Lock()
	defer v.mu.Unlock()
	maps.DeleteFunc(v.seenVersions, func(server string, _ int64) bool { return !v.p.isLive(server) })
	for server, r := range v.rosters {
		if !v.p.isLive(server) {
			v.applyChange(server, 0, registry.PresenceChange{Leave: membersOf(r)})
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
