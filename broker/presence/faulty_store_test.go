package presence

import (
	"context"
	"errors"

	"switchboard/registry"
)

var errUnavailable = errors.New("the store is unavailable")

// faultyStore is the store that one server calls. The test can make its calls fail.
type faultyStore struct {
	*registry.Memory
	n *node
}

// nextFailure reports whether the next call fails, before or after it is executed.
func (f faultyStore) nextFailure() (before, after bool) {
	f.n.waitWhileStopped()
	f.n.mu.Lock()
	defer f.n.mu.Unlock()
	if f.n.failures == 0 {
		return false, false
	}
	f.n.failures--
	return !f.n.failAfter, f.n.failAfter
}

// WatchUsers fails if the next call fails.
func (f faultyStore) WatchUsers(ctx context.Context, server string, users []string) []registry.WatchOutcome {
	before, after := f.nextFailure()
	var out []registry.WatchOutcome
	if !before {
		out = f.Memory.WatchUsers(ctx, server, users)
	}
	if before || after {
		out = make([]registry.WatchOutcome, len(users))
		for i := range out {
			out[i].Err = errUnavailable
		}
	}
	return out
}

// ChangePresence makes the change. A call that fails before the change fails for all channels, and
// one that fails after it, for some.
func (f faultyStore) ChangePresence(ctx context.Context, server string, list []registry.RosterChange) []registry.RosterOutcome {
	f.n.mu.Lock()
	f.n.calls++
	f.n.mu.Unlock()
	out := make([]registry.RosterOutcome, len(list))
	before, after := f.nextFailure()
	if before {
		for i := range out {
			out[i].Err = errUnavailable
		}
		return out
	}
	f.n.w.delay()
	out = f.Memory.ChangePresence(ctx, server, list)
	f.n.w.delay()
	f.n.waitWhileStopped()
	for i := range out {
		if after && (len(out) == 1 || f.n.w.intn(2) == 0) {
			out[i] = registry.RosterOutcome{Err: errUnavailable}
		}
	}
	return out
}

func (f faultyStore) Roster(ctx context.Context, server, channel string) (registry.Roster, error) {
	f.n.countReads("Roster", 1)
	if before, after := f.nextFailure(); before || after {
		return registry.Roster{}, errUnavailable
	}
	f.n.w.delay()
	defer f.n.waitWhileStopped()
	defer f.n.w.delay()
	defer f.n.waitHeldUp("Roster")
	return f.Memory.Roster(ctx, server, channel)
}

// RosterVersions fails like Roster.
func (f faultyStore) RosterVersions(ctx context.Context, server string, channels []string) ([]int64, error) {
	f.n.countReads("RosterVersions", len(channels))
	f.n.waitHeldUp(channels...)
	if before, after := f.nextFailure(); before || after {
		return nil, errUnavailable
	}
	f.n.w.delay()
	defer f.n.waitWhileStopped()
	defer f.n.w.delay()
	return f.Memory.RosterVersions(ctx, server, channels)
}

// HoldsChannels fails like Roster.
func (f faultyStore) HoldsChannels(ctx context.Context, server string, channels []string) ([]bool, error) {
	f.n.countReads("HoldsChannels", len(channels))
	if before, after := f.nextFailure(); before || after {
		return nil, errUnavailable
	}
	f.n.w.delay()
	return f.Memory.HoldsChannels(ctx, server, channels)
}

func (f faultyStore) HeldCounts(ctx context.Context, server string) (channels, clients int, err error) {
	f.n.countReads("HeldCounts", 1)
	f.n.waitHeldUp(server)
	return f.Memory.HeldCounts(ctx, server)
}

func (f faultyStore) ChannelServers(ctx context.Context, channel string) ([]string, error) {
	f.n.countReads("ChannelServers", 1)
	return f.Memory.ChannelServers(ctx, channel)
}

func (f faultyStore) ClientPage(ctx context.Context, server, cursor string, limit int) ([]string, string, error) {
	f.n.countReads("ClientPage", 1)
	return f.Memory.ClientPage(ctx, server, cursor, limit)
}

// User can be held up after it has read the store.
func (f faultyStore) User(ctx context.Context, user string) ([]registry.Binding, error) {
	f.n.countReads("User", 1)
	defer f.n.waitHeldUp("User")
	return f.Memory.User(ctx, user)
}

func (f faultyStore) Users(ctx context.Context, users []string) ([][]registry.Binding, error) {
	f.n.countReads("Users", len(users))
	f.n.waitHeldUp(users...)
	if before, after := f.nextFailure(); before || after {
		return nil, errUnavailable
	}
	return f.Memory.Users(ctx, users)
}

// waitHeldUp waits while calls of a method, or calls about a name, are held up.
func (n *node) waitHeldUp(names ...string) {
	for _, name := range names {
		n.mu.Lock()
		until := n.holdUp[name]
		n.mu.Unlock()
		if until != nil {
			<-until
		}
	}
}

// setHoldUp sets what calls of a method, or calls about a name, wait for.
func (n *node) setHoldUp(name string, until chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.holdUp[name] = until
}

func (n *node) countReads(method string, entries int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reads[method] += entries
}

// Lease returns the lease in the test's world. It reads w.live without a lock: presence calls it
// only while a test waits in DropExpired.
func (f faultyStore) Lease(_ context.Context, server string) (registry.Server, bool, error) {
	return registry.Server{}, f.n.w.live[server], nil
}
