package registry

import (
	"context"
	"maps"
	"slices"
	"time"
)

// WatchUsers is like [Redis.WatchUsers].
func (m *Memory) WatchUsers(_ context.Context, server string, users []string) []WatchOutcome {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]WatchOutcome, len(users))
	for i, user := range users {
		now := m.opts.Now().Truncate(time.Microsecond)
		servers := m.userWatchers[user]
		maps.DeleteFunc(servers, func(_ string, at time.Time) bool { return now.Sub(at) > m.opts.UserTTL })
		if servers == nil {
			servers = map[string]time.Time{}
			m.userWatchers[user] = servers
		}
		before, renewed := servers[server]
		if renewed && !now.After(before) {
			now = before.Add(time.Microsecond)
		}
		servers[server] = now
		out[i] = WatchOutcome{Number: now.UnixMicro(), Renewed: renewed}
	}
	return out
}

// UnwatchUsers is like [Redis.UnwatchUsers].
func (m *Memory) UnwatchUsers(_ context.Context, list []UserWatch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range list {
		servers := m.userWatchers[w.User]
		if at, ok := servers[w.Server]; ok && at.UnixMicro() == w.Number {
			delete(servers, w.Server)
			if len(servers) == 0 {
				delete(m.userWatchers, w.User)
			}
		}
	}
	return nil
}

// userWatchersLocked returns the servers that watch a user, sorted. The set ends a TTL after the
// last registration, as in Redis.
func (m *Memory) userWatchersLocked(user string) []string {
	servers := m.userWatchers[user]
	if len(servers) == 0 {
		return nil
	}
	live := func(at time.Time) bool { return m.opts.Now().Sub(at) < m.opts.UserTTL }
	if !slices.ContainsFunc(slices.Collect(maps.Values(servers)), live) {
		delete(m.userWatchers, user)
		return nil
	}
	return slices.Sorted(maps.Keys(servers))
}
