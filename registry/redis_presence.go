package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"switchboard/internal/redispipe"
)

var _ Presence = (*Redis)(nil)

// ChangePresence implements [Presence].
func (r *Redis) ChangePresence(ctx context.Context, server, channel string, change PresenceChange) (PresenceChanged, error) {
	changed, err := r.changePresence(ctx, server, channel, change)
	if err != nil {
		return PresenceChanged{}, fmt.Errorf("presence of channel %s: %w", channel, err)
	}
	return changed, nil
}

// changes is the script for those that come at once, in one run.
var changes = redispipe.Group{Script: presenceScript}

func (r *Redis) changePresence(ctx context.Context, server, channel string, change PresenceChange) (c PresenceChanged, err error) {
	var join, leave strings.Builder // neither names nor JSON have newlines
	for _, m := range change.Join {
		text, err := describeMember(m)
		if err != nil {
			return c, fmt.Errorf("client %s: %w", m.Client, err)
		}
		fmt.Fprintf(&join, "%s\n%d\n%s\n", m.Client, m.Generation, text)
	}
	for _, m := range change.Leave {
		fmt.Fprintf(&leave, "%s\n%d\n", m.Client, m.Generation)
	}
	answers, err := r.pipe.EvalEach(ctx, redispipe.Target{
		Group: &changes, Keys: []string{r.keys.roster(channel, server), r.keys.watchers(channel)}, Args: []any{join.String(), leave.String()},
	})
	if err != nil {
		return c, err
	}
	if answers[0].Err != nil {
		return c, answers[0].Err
	}
	fields := strings.Split(answers[0].Value.(string), "\n")
	numbers := make([]int64, 2+len(change.Join))
	for i := range numbers {
		if numbers[i], err = strconv.ParseInt(fields[i], 10, 64); err != nil {
			return c, err
		}
	}
	c.Prev, c.Version, c.Since = numbers[0], numbers[1], make([]time.Time, len(change.Join))
	for i, ms := range numbers[2:] {
		if ms != 0 {
			c.Since[i] = time.UnixMilli(ms).UTC()
		}
	}
	if rest := fields[len(numbers):]; len(rest) > 0 {
		c.Watchers = rest
		slices.Sort(c.Watchers)
	}
	return c, nil
}

// Roster implements [Presence]. Entries that nobody here has written are left out.
func (r *Redis) Roster(ctx context.Context, server, channel string) (Roster, error) {
	fields, err := r.fields(ctx, r.keys.roster(channel, server))
	if err != nil {
		return Roster{}, fmt.Errorf("roster of channel %s: %w", channel, err)
	}
	var roster Roster
	roster.Version, _ = strconv.ParseInt(fields[versionField], 10, 64)
	for client, value := range fields {
		if m, ok := parseMember(client, value); ok && client != versionField {
			roster.Members = append(roster.Members, m)
		}
	}
	sortMembers(roster.Members)
	return roster, nil
}

// RosterPage implements [Presence]. The cursor is that of HSCAN.
func (r *Redis) RosterPage(ctx context.Context, server, channel, cursor string, limit int) ([]Member, string, error) {
	members, next, err := r.scanRoster(ctx, server, channel, cursor, limit)
	if err != nil {
		return nil, "", fmt.Errorf("roster of channel %s: %w", channel, err)
	}
	return members, next, nil
}

func (r *Redis) scanRoster(ctx context.Context, server, channel, cursor string, limit int) (members []Member, next string, err error) {
	var position uint64
	if cursor != "" {
		if position, err = strconv.ParseUint(cursor, 10, 64); err != nil {
			return nil, "", ErrBadCursor
		}
	}
	cmd := redis.NewScanCmd(ctx, nil, "hscan", r.keys.roster(channel, server), position, "count", max(limit, 1))
	if err := r.pipe.Do(ctx, cmd); err != nil {
		return nil, "", err
	}
	fields, position := cmd.Val()
	for i := 0; i+1 < len(fields); i += 2 {
		if m, ok := parseMember(fields[i], fields[i+1]); ok && fields[i] != versionField {
			members = append(members, m)
		}
	}
	sortMembers(members)
	if position != 0 {
		next = strconv.FormatUint(position, 10)
	}
	return members, next, nil
}

// RosterSizes implements [Presence].
func (r *Redis) RosterSizes(ctx context.Context, channel string, servers []string) ([]int, error) {
	sizes := make([]int, len(servers))
	group, ctx := errgroup.WithContext(ctx)
	for i, server := range servers {
		group.Go(func() error {
			n, err := r.count(ctx, "hlen", r.keys.roster(channel, server))
			sizes[i] = int(max(n-1, 0)) // one field is the version
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("presence of channel %s: %w", channel, err)
	}
	return sizes, nil
}

// WatchPresence implements [Presence]. The tombstone is looked for behind it, as in BindChannel: a server that was
// suspended, buried and cleaned meanwhile takes its name out itself.
func (r *Redis) WatchPresence(ctx context.Context, server, channel string) error {
	_, err := r.count(ctx, "sadd", r.keys.watchers(channel), server)
	var buried int64
	if err == nil {
		buried, err = r.count(ctx, "exists", r.keys.tombstone(server))
	}
	if err == nil && buried == 1 {
		err = errors.Join(ErrDead, r.UnwatchPresence(ctx, server, channel))
	}
	if err != nil {
		return fmt.Errorf("watch channel %s: %w", channel, err)
	}
	return nil
}

// UnwatchPresence implements [Presence].
func (r *Redis) UnwatchPresence(ctx context.Context, server, channel string) error {
	if _, err := r.count(ctx, "srem", r.keys.watchers(channel), server); err != nil {
		return fmt.Errorf("unwatch channel %s: %w", channel, err)
	}
	return nil
}

// dropPresence removes what server had in the channels.
func (r *Redis) dropPresence(ctx context.Context, server string, channels []string) error {
	cmds := make([]redis.Cmder, 0, 2*len(channels))
	for _, channel := range channels {
		cmds = append(cmds, redis.NewIntCmd(ctx, "unlink", r.keys.roster(channel, server)),
			redis.NewIntCmd(ctx, "srem", r.keys.watchers(channel), server))
	}
	return r.pipe.DoAll(ctx, cmds)
}
