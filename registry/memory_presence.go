package registry

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"switchboard/internal/meter"
)

type rosterKey struct{ channel, server string }

// roster is the members, by client, that one server has in one channel.
type roster struct {
	version int64
	members map[string]Member
}

// ChangePresence is like [Redis.ChangePresence].
func (m *Memory) ChangePresence(_ context.Context, server string, changes []RosterChange) []RosterOutcome {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]RosterOutcome, len(changes))
	for i, c := range changes {
		out[i].ChangeResult = m.changeRosterLocked(server, c.Channel, c.PresenceChange)
	}
	return out
}

func (m *Memory) changeRosterLocked(server, channel string, change PresenceChange) ChangeResult {
	key := rosterKey{channel, server}
	r := m.rosters[key]
	if r == nil {
		r = &roster{members: map[string]Member{}}
	}
	changed := ChangeResult{
		Prev: r.version, Version: r.version, Since: make([]time.Time, len(change.Join)), Watchers: m.watchers.get(channel),
	}
	for i, member := range change.Join {
		member.Since = m.opts.Now()
		if current, known := r.members[member.Client]; known {
			if current.Generation > member.Generation {
				continue
			}
			member.Since = current.Since
		}
		r.members[member.Client] = member
		changed.Since[i] = member.Since
	}
	for _, member := range change.Leave {
		if r.members[member.Client].Generation <= member.Generation {
			delete(r.members, member.Client)
		}
	}
	if len(r.members) == 0 {
		delete(m.rosters, key)
		changed.Version = 0
		return changed
	}
	m.version++ // shared by all rosters: a roster that was empty in between gets a new version
	r.version = m.version
	m.rosters[key] = r
	changed.Version = r.version
	return changed
}

// Roster is like [Redis.Roster].
func (m *Memory) Roster(ctx context.Context, server, channel string) (Roster, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.rosters[rosterKey{channel, server}]
	if r == nil {
		return Roster{}, nil
	}
	members := slices.Collect(maps.Values(r.members))
	sortMembers(members)
	countMembers(ctx, members)
	return Roster{r.version, members}, nil
}

// countMembers counts members in the Meter of ctx, like the reply of Redis.
func countMembers(ctx context.Context, members []Member) {
	m := meter.Of(ctx)
	for i := 0; m != nil && i < len(members); i++ {
		m.Add(len(members[i].Client) + len(members[i].User) + len(members[i].Info) + recordBytes)
	}
}

// RosterPage is like [Redis.RosterPage]. The cursor is the last client of the page before.
func (m *Memory) RosterPage(ctx context.Context, server, channel, cursor string, limit int) ([]Member, string, error) {
	all, _ := m.Roster(meter.With(ctx, nil), server, channel)
	members := all.Members
	from, found := slices.BinarySearchFunc(members, cursor, func(m Member, c string) int { return strings.Compare(m.Client, c) })
	if found {
		from++
	}
	members = members[from:]
	next := ""
	if limit = max(limit, 1); len(members) > limit {
		members, next = members[:limit], members[limit-1].Client
	}
	countMembers(ctx, members)
	return members, next, nil
}

// RosterHas is like [Redis.RosterHas].
func (m *Memory) RosterHas(_ context.Context, server, channel string, clients []string) ([]bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	has := make([]bool, len(clients))
	if r := m.rosters[rosterKey{channel, server}]; r != nil {
		for i, client := range clients {
			_, has[i] = r.members[client]
		}
	}
	return has, nil
}

// RosterSizes is like [Redis.RosterSizes].
func (m *Memory) RosterSizes(_ context.Context, channel string, servers []string) ([]int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	sizes := make([]int, len(servers))
	for i, server := range servers {
		if r := m.rosters[rosterKey{channel, server}]; r != nil {
			sizes[i] = len(r.members)
		}
	}
	return sizes, nil
}

// WatchPresence is like [Redis.WatchPresence].
func (m *Memory) WatchPresence(_ context.Context, server, channel string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.deadLocked(server) {
		return fmt.Errorf("watch channel %s: %w", channel, ErrDead)
	}
	m.watchers.add(channel, server)
	return nil
}

// UnwatchPresence is like [Redis.UnwatchPresence].
func (m *Memory) UnwatchPresence(_ context.Context, server, channel string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watchers.remove(channel, server)
	return nil
}
