package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"switchboard/registry"
)

// The methods below are for presence.

func (s *store) ChangePresence(ctx context.Context, server string, changes []registry.RosterChange) []registry.RosterOutcome {
	out := make([]registry.RosterOutcome, len(changes))
	list, err := callStore(ctx, s, "ChangePresence", subject{}, func(ctx context.Context) ([]registry.RosterOutcome, error) {
		return s.w.registry.ChangePresence(ctx, server, changes), nil
	}, server, describeChanges(changes))
	if err == nil {
		return list
	}
	for i := range out {
		out[i].Err = err
	}
	return out
}

// describeChanges formats changes as `news: +ann/c1 -ben/c2`.
func describeChanges(changes []registry.RosterChange) string {
	var parts []string
	for _, c := range changes {
		parts = append(parts, c.Channel+":")
		for _, m := range c.Join {
			parts = append(parts, fmt.Sprintf("+%s@%d", m.Client, m.Generation))
		}
		for _, m := range c.Leave {
			parts = append(parts, fmt.Sprintf("-%s@%d", m.Client, m.Generation))
		}
	}
	return strings.Join(parts, " ")
}

func (s *store) Roster(ctx context.Context, server, channel string) (registry.Roster, error) {
	return callStore(ctx, s, "Roster", subject{}, func(ctx context.Context) (registry.Roster, error) {
		return s.w.registry.Roster(ctx, server, channel)
	}, server, channel)
}

func (s *store) WatchPresence(ctx context.Context, server, channel string) error {
	return callStoreErr(ctx, s, "WatchPresence", subject{}, func(ctx context.Context) error {
		return s.w.registry.WatchPresence(ctx, server, channel)
	}, server, channel)
}

func (s *store) UnwatchPresence(ctx context.Context, server, channel string) error {
	return callStoreErr(ctx, s, "UnwatchPresence", subject{}, func(ctx context.Context) error {
		return s.w.registry.UnwatchPresence(ctx, server, channel)
	}, server, channel)
}

func (s *store) RosterVersions(ctx context.Context, server string, channels []string) ([]int64, error) {
	return callStore(ctx, s, "RosterVersions", subject{}, func(ctx context.Context) ([]int64, error) {
		return s.w.registry.RosterVersions(ctx, server, channels)
	}, server, channels)
}

func (s *store) HeldCounts(ctx context.Context, server string) (channels, clients int, err error) {
	counts, err := callStore(ctx, s, "HeldCounts", subject{}, func(ctx context.Context) (counts [2]int, err error) {
		counts[0], counts[1], err = s.w.registry.HeldCounts(ctx, server)
		return counts, err
	}, server)
	return counts[0], counts[1], err
}

func (s *store) HoldsChannels(ctx context.Context, server string, channels []string) ([]bool, error) {
	return callStore(ctx, s, "HoldsChannels", subject{}, func(ctx context.Context) ([]bool, error) {
		return s.w.registry.HoldsChannels(ctx, server, channels)
	}, server, channels)
}

func (s *store) ClientPage(ctx context.Context, server, cursor string, limit int) (clients []string, next string, err error) {
	type page struct {
		clients []string
		next    string
	}
	p, err := callStore(ctx, s, "ClientPage", subject{}, func(ctx context.Context) (p page, err error) {
		p.clients, p.next, err = s.w.registry.ClientPage(ctx, server, cursor, limit)
		return p, err
	}, server, cursor)
	return p.clients, p.next, err
}

func (s *store) Users(ctx context.Context, users []string) ([][]registry.Binding, error) {
	return callStore(ctx, s, "Users", subject{}, func(ctx context.Context) ([][]registry.Binding, error) {
		return s.w.registry.Users(ctx, users)
	}, users)
}

// watchUser registers the server as watching one user.
func (s *store) watchUser(ctx context.Context, server, user string) (registry.WatchOutcome, error) {
	return callStore(ctx, s, "WatchUsers", subject{}, func(ctx context.Context) (registry.WatchOutcome, error) {
		o := s.w.registry.WatchUsers(ctx, server, []string{user})[0]
		return o, o.Err
	}, server, user)
}

func (s *store) WatchUsers(ctx context.Context, server string, users []string) []registry.WatchOutcome {
	out := make([]registry.WatchOutcome, len(users))
	for i, o := range concurrently(ctx, users, func(ctx context.Context, user string) (registry.WatchOutcome, error) {
		return s.watchUser(ctx, server, user)
	}) {
		out[i] = o.Value
		out[i].Err = o.Err
	}
	return out
}

func (s *store) UnwatchUsers(ctx context.Context, list []registry.UserWatch) error {
	return errors.Join(errorsOf(concurrently(ctx, list, func(ctx context.Context, watch registry.UserWatch) (struct{}, error) {
		return struct{}{}, callStoreErr(ctx, s, "UnwatchUsers", subject{}, func(ctx context.Context) error {
			return s.w.registry.UnwatchUsers(ctx, []registry.UserWatch{watch})
		}, watch)
	}))...)
}

// loseWatches lets the store lose which servers watch some users.
func (w *world) loseWatches(lost func(user string) bool) {
	ctx := context.Background()
	for _, name := range w.names {
		user := w.clients[name].user
		for _, n := range w.nodes {
			if user != "" && lost(user) {
				watch := registry.UserWatch{User: user, Server: n.serverID()}
				watch.Number = w.registry.WatchUsers(ctx, watch.Server, []string{user})[0].Number
				_ = w.registry.UnwatchUsers(ctx, []registry.UserWatch{watch})
			}
		}
	}
}

func (s *store) RosterPage(context.Context, string, string, string, int) ([]registry.Member, string, error) {
	panic("sim: no pages of rosters")
}

func (s *store) RosterHas(context.Context, string, string, []string) ([]bool, error) {
	panic("sim: no here values")
}

func (s *store) RosterSizes(context.Context, string, []string) ([]int, error) {
	panic("sim: no counts")
}

func (s *store) Leave(ctx context.Context, server string) error {
	return callStoreErr(ctx, s, "Leave", subject{}, func(ctx context.Context) error { return s.w.registry.Leave(ctx, server) }, server)
}

func (s *store) RevokedSince(context.Context, int64) ([]string, int64, bool, error) {
	return nil, 0, false, nil // there are no tokens
}
