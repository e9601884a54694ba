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

// presenceChanges applies concurrent changes in one run of the script.
var presenceChanges = redispipe.BatchScript{Script: changePresenceScript}

// ChangePresence applies changes to the server's rosters, one for each channel, and returns the
// outcomes in the order of list. A client that is already a member keeps its Since. A member
// with a higher Generation is not changed. The version grows even if nothing changes, unless the
// roster is empty.
func (r *Redis) ChangePresence(ctx context.Context, server string, list []RosterChange) []RosterOutcome {
	out := make([]RosterOutcome, len(list))
	targets, indexes := make([]redispipe.Target, 0, len(list)), make([]int, 0, len(list))
	for i, c := range list {
		join, leave, err := encodeChange(c.PresenceChange)
		if err != nil {
			out[i].Err = fmt.Errorf("presence of channel %s: %w", c.Channel, err)
			continue
		}
		keys := []string{r.keys.roster(c.Channel, server), r.keys.watchers(c.Channel)}
		targets = append(targets, redispipe.Target{Script: &presenceChanges, Keys: keys, Args: []any{join, leave}})
		indexes = append(indexes, i)
	}
	for k, answer := range r.pipe.EvalEach(ctx, targets...) {
		i, err := indexes[k], answer.Err
		if err == nil {
			out[i].ChangeResult, err = parseChangeResult(answer.Value, len(list[i].Join))
		}
		if err != nil {
			out[i].Err = fmt.Errorf("presence of channel %s: %w", list[i].Channel, err)
		}
	}
	return out
}

// encodeChange encodes a change for the script, in lines: neither names nor JSON have newlines.
func encodeChange(c PresenceChange) (join, leave []byte, err error) {
	join, leave = []byte{}, []byte{}
	for _, m := range c.Join {
		text, err := describeMember(m)
		if err != nil {
			return nil, nil, fmt.Errorf("client %s: %w", m.Client, err)
		}
		join = append(append(join, m.Client...), '\n')
		join = append(strconv.AppendInt(join, m.Generation, 10), '\n')
		join = append(append(join, text...), '\n')
	}
	for _, m := range c.Leave {
		leave = append(append(leave, m.Client...), '\n')
		leave = append(strconv.AppendInt(leave, m.Generation, 10), '\n')
	}
	return join, leave, nil
}

// parseChangeResult parses the script's reply to a change. joins is the number of its joins.
func parseChangeResult(reply any, joins int) (c ChangeResult, err error) {
	text, _ := reply.(string)
	fields := strings.Split(text, "\n")
	if len(fields) < 2+joins {
		return c, fmt.Errorf("unexpected reply of a script: %q", text)
	}
	numbers := make([]int64, 2+joins)
	for i := range numbers {
		if numbers[i], err = strconv.ParseInt(fields[i], 10, 64); err != nil {
			return c, err
		}
	}
	c.Prev, c.Version, c.Since = numbers[0], numbers[1], make([]time.Time, joins)
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

// Roster returns the members that the server has in the channel. To miss no later change, a caller
// must call WatchPresence before Roster. Roster skips malformed entries.
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

// RosterPage returns about limit members, from cursor on. An empty cursor begins the roster. next
// is empty after the last page, and only then. A member that is in the roster all the time is
// returned at least once. RosterPage returns ErrBadCursor if the cursor is malformed. The cursor is
// that of HSCAN.
func (r *Redis) RosterPage(
	ctx context.Context, server, channel, cursor string, limit int,
) (members []Member, next string, err error) {
	members, next, err = r.scanRoster(ctx, server, channel, cursor, limit)
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

// RosterHas returns for each of the clients whether it is in the server's roster of the channel.
func (r *Redis) RosterHas(ctx context.Context, server, channel string, clients []string) ([]bool, error) {
	has := make([]bool, len(clients))
	if len(clients) == 0 {
		return has, nil
	}
	args := make([]any, 0, 2+len(clients))
	args = append(args, "hmget", r.keys.roster(channel, server))
	for _, client := range clients {
		args = append(args, client)
	}
	cmd := redis.NewSliceCmd(ctx, args...)
	if err := r.pipe.Do(ctx, cmd); err != nil {
		return nil, fmt.Errorf("roster of channel %s: %w", channel, err)
	}
	for i, value := range cmd.Val() {
		has[i] = value != nil
	}
	return has, nil
}

// RosterSizes returns the number of members that each of the servers has in the channel.
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

// WatchPresence adds the server to the channel's watchers, which ChangePresence returns. It returns
// ErrDead if the server was declared dead. Like BindChannel it checks the tombstone after the
// write: a server that was suspended and declared dead in between removes itself.
func (r *Redis) WatchPresence(ctx context.Context, server, channel string) error {
	_, err := r.count(ctx, "sadd", r.keys.watchers(channel), server)
	var dead int64
	if err == nil {
		dead, err = r.count(ctx, "exists", r.keys.tombstone(server))
	}
	if err == nil && dead == 1 {
		err = errors.Join(ErrDead, r.UnwatchPresence(ctx, server, channel))
	}
	if err != nil {
		return fmt.Errorf("watch channel %s: %w", channel, err)
	}
	return nil
}

// UnwatchPresence removes the server from the channel's watchers.
func (r *Redis) UnwatchPresence(ctx context.Context, server, channel string) error {
	if _, err := r.count(ctx, "srem", r.keys.watchers(channel), server); err != nil {
		return fmt.Errorf("unwatch channel %s: %w", channel, err)
	}
	return nil
}

// dropPresence removes the server's rosters of the channels, and the server from their watchers.
func (r *Redis) dropPresence(ctx context.Context, server string, channels []string) error {
	cmds := make([]redis.Cmder, 0, 2*len(channels))
	for _, channel := range channels {
		cmds = append(cmds, redis.NewIntCmd(ctx, "unlink", r.keys.roster(channel, server)),
			redis.NewIntCmd(ctx, "srem", r.keys.watchers(channel), server))
	}
	return r.pipe.DoAll(ctx, cmds)
}
