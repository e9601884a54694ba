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
	if v.reading || !v.all && len(v.suspects) == 0 {
		return
	}
	v.reading = true
	v.p.opts.Pool.Go(v.reader)
}

// reader reads what must be read. After a failure the next tick tries again.
func (v *View) reader() {
	ctx, cancel := v.p.context()
	defer cancel()
	done := v.bindingTurn()
	bound := v.bound // else whoever binds it reads everything
	var err error
	if bound {
		err = v.watchAgain(ctx)
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

func (v *View) watchAgain(ctx context.Context) error {
	v.mu.Lock()
	again := v.again
	v.again = false
	v.mu.Unlock()
	if !again {
		return nil
	}
	err := v.p.opts.Store.WatchPresence(ctx, v.p.opts.ServerID(), v.channel)
	if err != nil {
		v.mu.Lock()
		v.again = true
		v.mu.Unlock()
	}
	return err
}

// readOnce reads the rosters that must be read; what cannot be read stays to be read.
func (v *View) readOnce(ctx context.Context) error {
	v.mu.Lock()
	all, some := v.all, v.suspects
	v.all, v.suspects, v.record = false, map[string]bool{}, true
	v.mu.Unlock()
	err := v.readSome(ctx, all, some)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.record, v.during = false, nil
	if err != nil {
		v.all = v.all || all
		for s := range some {
			v.suspects[s] = true
		}
	}
	return err
}

func (v *View) readSome(ctx context.Context, all bool, some map[string]bool) error {
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
		v.forgetVersion(server)
		held, err := v.p.opts.Store.Roster(ctx, server, v.channel)
		if err != nil {
			return err
		}
		v.adopt(server, held)
	}
	return nil
}

// forgetVersion lets no change follow on what is known of the roster, which is about to be read: the store may have gone
// back to an older version.
func (v *View) forgetVersion(server string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if r := v.rosters[server]; r != nil {
		r.version = unknown
	} else {
		v.rosters[server] = &roster{version: unknown, members: map[string]registry.Member{}}
	}
}

// adopt makes what was read the server's roster, and lets follow what came meanwhile.
func (v *View) adopt(server string, held registry.Roster) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.p.isLive(server) {
		held = registry.Roster{} // it died while we read
	}
	r := v.rosters[server]
	if r == nil {
		r = &roster{}
	}
	if v.seen[server] = held.Version; held.Version == 0 {
		v.seen[server] = math.MaxInt64 // a change from before the reading would seem to be the first
	}
	v.change(server, held.Version, difference(membersOf(r), held.Members))
	for _, u := range v.during {
		if u.server == server {
			v.applyLocked(u)
		}
	}
}
