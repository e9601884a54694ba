package registry

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// BindChannel implements [Registry].
//
// All steps run every time, although ch_list changes only with a channel's first server:
// a first server that died before the last step, or a failover, may have left the channel
// out of the list, and the second server would find nothing to do.
//
// The tombstone is checked before and after. A server that was suspended between the note
// and the binding may have been buried and cleaned meanwhile, so that nobody would ever
// take the binding back: it does so itself. One that is buried after the second check has
// its note in s_ch_ still.
func (r *Redis) BindChannel(ctx context.Context, server, channel string) error {
	if err := r.bindChannel(ctx, server, channel); err != nil {
		return fmt.Errorf("bind channel %s: %w", channel, err)
	}
	return nil
}

func (r *Redis) bindChannel(ctx context.Context, server, channel string) error {
	if err := r.hold(ctx, r.keys.heldChannels(server), server, channel); err != nil {
		return err
	}
	if _, err := r.count(ctx, "sadd", r.keys.channel(channel), server); err != nil {
		return err
	}
	if _, err := r.count(ctx, "sadd", r.keys.channelList(), channel); err != nil {
		return err
	}
	buried, err := r.count(ctx, "exists", r.keys.tombstone(server))
	if err != nil {
		return err
	}
	if buried == 1 {
		return errors.Join(ErrDead, r.unbindChannel(ctx, server, channel))
	}
	return nil
}

// UnbindChannel implements [Registry].
func (r *Redis) UnbindChannel(ctx context.Context, server, channel string) error {
	if err := r.unbindChannel(ctx, server, channel); err != nil {
		return fmt.Errorf("unbind channel %s: %w", channel, err)
	}
	return nil
}

func (r *Redis) unbindChannel(ctx context.Context, server, channel string) error {
	left, err := r.eval(ctx, unbindChannelScript, []string{r.keys.channel(channel)}, server)
	if err != nil {
		return err
	}
	if left == 0 {
		if _, err := r.delist(ctx, channel); err != nil {
			return err
		}
	}
	_, err = r.count(ctx, "srem", r.keys.heldChannels(server), channel)
	return err
}

// delist takes a channel without servers out of ch_list, and puts it back when one came
// meanwhile: that server may have added it just before it was taken out.
func (r *Redis) delist(ctx context.Context, channel string) (bool, error) {
	removed, err := r.count(ctx, "srem", r.keys.channelList(), channel)
	if err != nil {
		return false, err
	}
	held, err := r.count(ctx, "exists", r.keys.channel(channel))
	if err != nil {
		return false, err
	}
	if held == 1 {
		_, err = r.eval(ctx, enlistScript, []string{r.keys.channelList()}, channel)
		return false, err
	}
	return removed == 1, nil
}

// PruneChannel implements [Registry].
func (r *Redis) PruneChannel(ctx context.Context, channel string) (bool, error) {
	pruned, err := r.pruneChannel(ctx, channel)
	if err != nil {
		return false, fmt.Errorf("prune channel %s: %w", channel, err)
	}
	return pruned, nil
}

// pruneChannel looks first: a channel in use must not leave the list even for a moment.
func (r *Redis) pruneChannel(ctx context.Context, channel string) (bool, error) {
	held, err := r.count(ctx, "exists", r.keys.channel(channel))
	if err != nil || held == 1 {
		return false, err
	}
	return r.delist(ctx, channel)
}

// ChannelServers implements [Registry].
func (r *Redis) ChannelServers(ctx context.Context, channel string) ([]string, error) {
	servers, err := r.names(ctx, "smembers", r.keys.channel(channel))
	if err != nil {
		return nil, fmt.Errorf("servers of channel %s: %w", channel, err)
	}
	return servers, nil
}

// Channels implements [Registry]. The cursor is that of SSCAN.
func (r *Redis) Channels(ctx context.Context, prefix, cursor string, limit int) ([]string, string, error) {
	names, next, err := r.scanChannels(ctx, prefix, cursor, limit)
	if err != nil {
		return nil, "", fmt.Errorf("channels from %q: %w", prefix, err)
	}
	return names, next, nil
}

func (r *Redis) scanChannels(ctx context.Context, prefix, cursor string, limit int) ([]string, string, error) {
	var position uint64
	if cursor != "" {
		var err error
		if position, err = strconv.ParseUint(cursor, 10, 64); err != nil {
			return nil, "", ErrBadCursor
		}
	}
	cmd := redis.NewScanCmd(ctx, nil, "sscan", r.keys.channelList(), position,
		"match", globEscaper.Replace(prefix)+"*", "count", max(limit, 1))
	if err := r.pipe.Do(ctx, cmd); err != nil {
		return nil, "", err
	}
	names, position := cmd.Val()
	if position == 0 {
		return names, "", nil
	}
	return names, strconv.FormatUint(position, 10), nil
}
