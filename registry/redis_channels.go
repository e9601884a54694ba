package registry

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
)

// PruneChannel removes the channel from ch_list if no server has bound it, and reports whether it
// removed it.
func (r *Redis) PruneChannel(ctx context.Context, channel string) (bool, error) {
	pruned, err := r.pruneChannel(ctx, channel)
	if err != nil {
		return false, fmt.Errorf("prune channel %s: %w", channel, err)
	}
	return pruned, nil
}

// pruneChannel checks first: a channel in use must not leave the list, not even briefly.
func (r *Redis) pruneChannel(ctx context.Context, channel string) (bool, error) {
	bound, err := r.count(ctx, "exists", r.keys.channel(channel))
	if err != nil || bound == 1 {
		return false, err
	}
	delisted, err := r.delist(ctx, channel)
	return delisted == 1, err
}

// ChannelListKey returns the key of the list that has the channel.
func (r *Redis) ChannelListKey(string) string { return r.keys.channelList() }

// ChannelServers returns the servers in ch_{channel}, live or not, sorted.
func (r *Redis) ChannelServers(ctx context.Context, channel string) ([]string, error) {
	servers, err := r.names(ctx, "smembers", r.keys.channel(channel))
	if err != nil {
		return nil, fmt.Errorf("servers of channel %s: %w", channel, err)
	}
	return servers, nil
}

// Channels returns about limit names of ch_list that begin with prefix, from cursor on. An empty
// cursor begins the list. next is empty after the last page, and only then: a page may have no
// names. A name may be returned twice; a name that is in the list all the time is returned at
// least once. Channels returns ErrBadCursor if the cursor is malformed. The cursor is that of
// SSCAN.
func (r *Redis) Channels(ctx context.Context, prefix, cursor string, limit int) (names []string, next string, err error) {
	names, next, err = r.scanSet(ctx, r.keys.channelList(), prefix, cursor, limit)
	if err != nil {
		return nil, "", fmt.Errorf("channels from %q: %w", prefix, err)
	}
	return names, next, nil
}

// scanSet returns a page of the names in a set that begin with prefix.
func (r *Redis) scanSet(ctx context.Context, key, prefix, cursor string, limit int) ([]string, string, error) {
	var position uint64
	if cursor != "" {
		var err error
		if position, err = strconv.ParseUint(cursor, 10, 64); err != nil {
			return nil, "", ErrBadCursor
		}
	}
	cmd := redis.NewScanCmd(ctx, nil, "sscan", key, position,
		"match", redispipe.EscapeGlob(prefix)+"*", "count", max(limit, 1))
	if err := r.pipe.Do(ctx, cmd); err != nil {
		return nil, "", err
	}
	names, position := cmd.Val()
	if position == 0 {
		return names, "", nil
	}
	return names, strconv.FormatUint(position, 10), nil
}
