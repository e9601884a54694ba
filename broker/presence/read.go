package presence

import (
	"context"
	"math"

	"switchboard/registry"
)

func (v *View) wakeReader() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.wakeReaderLocked()
}

// wakeReaderLocked queues a reader if there is something to read and none yet.
func (v *View) wakeReaderLocked() {
	if v.reading || !v.allDirty && len(v.dirty) == 0 {
		return
	}
	v.reading = true
	v.p.opts.Pool.Go(v.runReader)
}

// reader reads what must be read. After a failure the next tick tries again.
func (v *View) runReader() {
	ctx, cancel := v.p.context()
	defer cancel()
	done := v.lockBinding()
	bound := v.bound // else whoever binds it reads everything
	var err error
	if bound {
		err = v.repeatWatch(ctx)
	}
	if bound && err == nil {
		err = v.readOnce(ctx)
	}
	done()
	if err != nil {
		v.p.opts.Logger.Warn().Err(err).Msg("presence not read; the next tick tries again")
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.reading = false
	if bound && err == nil {
		v.wakeReaderLocked()
	}
}

func (v *View) repeatWatch(ctx context.Context) error {
	v.mu.Lock()
	again := v.watchAgain
	v.watchAgain = false
	v.mu.Unlock()
	if !again {
		return nil
	}
	err := v.p.opts.Store.WatchPresence(ctx, v.p.opts.ServerID(), v.channel)
	if err != nil {
		v.mu.Lock()
		v.watchAgain = true
		v.mu.Unlock()
	}
	return err
}

// readOnce reads the rosters that must be read; what cannot be read stays to be read.
func (v *View) readOnce(ctx context.Context) error {
	v.mu.Lock()
	all, some := v.allDirty, v.dirty
	v.allDirty, v.dirty, v.recording = false, map[string]bool{}, true
	v.mu.Unlock()
	err := v.readRosters(ctx, all, some)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.recording, v.recorded = false, nil
	if err != nil {
		v.allDirty = v.allDirty || all
		for s := range some {
			v.dirty[s] = true
		}
	}
	return err
}

func (v *View) readRosters(ctx context.Context, all bool, some map[string]bool) error {
	if all {
		servers, err := v.p.opts.Store.ChannelServers(ctx, v.channel)
		if err != nil {
			return err
		}
		for _, s := range servers {
			some[s] = true
		}
		v.mu.Lock()
		for s := range v.rosters {
			some[s] = true
		}
		v.mu.Unlock()
	}
	for server := range some {
		if !v.p.isLive(server) {
			continue
		}
		v.invalidateVersion(server)
		held, err := v.p.opts.Store.Roster(ctx, server, v.channel)
		if err != nil {
			return err
		}
		v.applyRoster(server, held)
	}
	return nil
}

// forgetVersion lets no change follow on what is known of the roster, which is about to be read: the store may have gone
// back to an older version.
func (v *View) invalidateVersion(server string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if r := v.rosters[server]; r != nil {
		r.version = unknownVersion
	} else {
		v.rosters[server] = &roster{version: unknownVersion, members: map[string]registry.Member{}}
	}
}

// adopt makes what was read the server's roster, and lets follow what came meanwhile.
func (v *View) applyRoster(server string, held registry.Roster) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.p.isLive(server) {
		held = registry.Roster{} // it died while we read
	}
	r := v.rosters[server]
	if r == nil {
		r = &roster{}
	}
	if v.seenVersions[server] = held.Version; held.Version == 0 {
		v.seenVersions[server] = math.MaxInt64 // a change from before the reading would seem to be the first
	}
	v.applyChange(server, held.Version, difference(membersOf(r), held.Members))
	for _, u := range v.recorded {
		if u.server == server {
			v.applyLocked(u)
		}
	}
}
