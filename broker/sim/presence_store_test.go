package sim

import (
	"context"
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

func (s *store) RosterPage(context.Context, string, string, string, int) ([]registry.Member, string, error) {
	panic("sim: no pages of rosters")
}

func (s *store) RosterHas(context.Context, string, string, []string) ([]bool, error) {
	panic("sim: no here values")
}

func (s *store) RosterSizes(context.Context, string, []string) ([]int, error) {
	panic("sim: no counts")
}

func (s *store) Leave(context.Context, string) error { panic("sim: no server leaves") }

func (s *store) RevokedSince(context.Context, int64) ([]string, int64, bool, error) {
	return nil, 0, false, nil // there are no tokens
}
