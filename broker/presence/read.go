package presence

import (
	"context"
	"maps"
	"math"
	"slices"

	"switchboard/registry"
)

func (v *View) wakeReader() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.wakeReaderLocked()
}

// wakeReaderLocked queues a reader if a roster must be read and no reader is queued.
func (v *View) wakeReaderLocked() {
	if v.reading || !v.allDirty && len(v.dirty) == 0 {
		return
	}
	v.reading = true
	v.p.opts.Pool.Go(v.runReader)
}

// runReader reads the dirty rosters. After a failure the next tick tries again.
func (v *View) runReader() {
	ctx, cancel := v.p.context()
	defer cancel()
	unlock := v.lockBinding()
	bound := v.bound // if it is false, the next bind reads all rosters
	var err error
	if bound {
		err = v.repeatWatch(ctx)
	}
	if bound && err == nil {
		err = v.readOnce(ctx)
	}
	unlock()
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

// repeatWatch registers the view in the store again if watchAgain is set.
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

// readOnce reads the dirty rosters. If one of the reads fails, all of them stay dirty.
func (v *View) readOnce(ctx context.Context) error {
	v.mu.Lock()
	all, servers := v.allDirty, v.dirty
	v.allDirty, v.dirty, v.recording = false, map[string]bool{}, true
	v.mu.Unlock()
	err := v.readRosters(ctx, all, servers)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.recording, v.recorded = false, nil
	if err != nil {
		v.allDirty = v.allDirty || all
		for s := range servers {
			v.dirty[s] = true
		}
	}
	return err
}

// readRosters reads the rosters of the servers, or of all servers of the channel.
func (v *View) readRosters(ctx context.Context, all bool, servers map[string]bool) error {
	if all {
		list, err := v.p.opts.Store.ChannelServers(ctx, v.channel)
		if err != nil {
			return err
		}
		for _, s := range list {
			servers[s] = true
		}
		v.mu.Lock()
		for s := range v.rosters {
			servers[s] = true
		}
		v.mu.Unlock()
	}
	for _, server := range slices.Sorted(maps.Keys(servers)) {
		if !v.p.isLive(server) {
			continue
		}
		v.invalidateVersion(server)
		stored, err := v.p.opts.Store.Roster(ctx, server, v.channel)
		if err != nil {
			return err
		}
		v.applyRoster(server, stored)
	}
	return nil
}

// invalidateVersion makes the updates of a roster wait until the roster is read. The version in the
// view may be one that the store has lost.
func (v *View) invalidateVersion(server string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if r := v.rosters[server]; r != nil {
		r.version = unknownVersion
	} else {
		v.rosters[server] = &roster{version: unknownVersion, members: map[string]registry.Member{}}
	}
}

// applyRoster replaces the server's roster by the stored one and then applies the updates that were
// recorded during the read.
func (v *View) applyRoster(server string, stored registry.Roster) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.p.isLive(server) {
		stored = registry.Roster{} // it died during the read
	}
	r := v.rosters[server]
	if r == nil {
		r = &roster{}
	}
	if v.seenVersions[server] = stored.Version; stored.Version == 0 {
		// The roster was empty. The next update may be older than the read, so applyLocked must not
		// apply it but read the roster again.
		v.seenVersions[server] = math.MaxInt64
	}
	v.applyChangeLocked(server, stored.Version, difference(membersOf(r), stored.Members))
	for _, u := range v.recorded {
		if u.server == server {
			v.applyLocked(u)
		}
	}
}
