package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
)

// BindChannel records that the server has a subscriber of the channel: in s_ch_, then ch_, then
// ch_list. Repeating the call is harmless, and restores entries that were lost. It returns ErrDead
// if the server was declared dead. Calls of BindChannel and UnbindChannel for one server and channel
// must not overlap. Concurrent calls share round trips: see [redispipe.Coalescer].
func (r *Redis) BindChannel(ctx context.Context, server, channel string) error {
	if err := r.binding.Do(ctx, server, channel); err != nil {
		return fmt.Errorf("bind channel %s: %w", channel, err)
	}
	return nil
}

// BindChannels does for each channel what BindChannel does. It returns one error for each channel,
// in the order of channels.
func (r *Redis) BindChannels(ctx context.Context, server string, channels []string) []error {
	errs := make([]error, 0, len(channels))
	for some := range slices.Chunk(channels, redispipe.MaxNames) {
		all := r.bindChannels(ctx, server, some)
		for _, channel := range some {
			err := redispipe.ErrorOf(all, channel)
			if err != nil {
				err = fmt.Errorf("bind channel %s: %w", channel, err)
			}
			errs = append(errs, err)
		}
	}
	return errs
}

// UnbindChannel reverts BindChannel: it removes the server from ch_; then the channel from ch_list,
// if that was its last server; then the channel from s_ch_. If another server bound the channel
// meanwhile, the channel is added to ch_list again. UnbindChannel also removes the server's roster
// of the channel, and the server from the channel's watchers.
func (r *Redis) UnbindChannel(ctx context.Context, server, channel string) error {
	if err := r.unbinding.Do(ctx, server, channel); err != nil {
		return fmt.Errorf("unbind channel %s: %w", channel, err)
	}
	return nil
}

// bindChannels are the steps of BindChannel, each for all channels in one round trip. Between the steps stands the
// answer, and not only their order in a pipeline: in a Cluster they go to different nodes.
//
// All steps run every time, although ch_list changes only with a channel's first server:
// a first server that died before the last step, or a failover, may have left the channel
// out of the list, and the second server would find nothing to do.
//
// The tombstone is checked before and after. A server that was suspended between the note
// and the binding may have been buried and cleaned meanwhile, so that nobody would ever
// take the binding back: it does so itself. One that is buried after the second check has
// its note in s_ch_ still.
func (r *Redis) bindChannels(ctx context.Context, server string, channels []string) error {
	if err := r.hold(ctx, r.keys.heldChannels(server), server, channels...); err != nil {
		return err
	}
	failed := make(redispipe.Failed)
	if channels = r.forEach(ctx, failed, channels, nil, "sadd", server); len(channels) == 0 {
		return failed.OrNil()
	}
	listed := redis.NewIntCmd(ctx, append([]any{"sadd", r.keys.channelList()}, anys(channels)...)...)
	buried := redis.NewIntCmd(ctx, "exists", r.keys.tombstone(server))
	err := r.pipe.DoAll(ctx, []redis.Cmder{listed, buried})
	if err == nil && buried.Val() == 1 {
		err = errors.Join(ErrDead, r.unbindChannels(ctx, server, channels))
	}
	failed.Add(channels, err)
	return failed.OrNil()
}

// unbindChannels are the steps of UnbindChannel, likewise.
func (r *Redis) unbindChannels(ctx context.Context, server string, channels []string) error {
	failed := make(redispipe.Failed)
	var vacant []string
	channels = r.forEach(ctx, failed, channels, nil, "srem", server)
	if err := r.dropPresence(ctx, server, channels); err != nil {
		failed.Add(channels, err)
		return failed
	}
	channels = r.forEach(ctx, failed, channels, func(channel string, servers int64) {
		if servers == 0 {
			vacant = append(vacant, channel)
		}
	}, "scard")
	if len(vacant) > 0 {
		if _, err := r.delist(ctx, vacant...); err != nil {
			failed.Add(channels, err)
			return failed
		}
	}
	if len(channels) > 0 {
		_, err := r.count(ctx, append([]any{"srem", r.keys.heldChannels(server)}, anys(channels)...)...)
		failed.Add(channels, err)
	}
	return failed.OrNil()
}

// delist takes channels without servers out of ch_list, and puts back those to which one came
// meanwhile: that server may have added them just before they were taken out.
func (r *Redis) delist(ctx context.Context, channels ...string) (gone int64, err error) {
	removed, err := r.count(ctx, append([]any{"srem", r.keys.channelList()}, anys(channels)...)...)
	if err != nil {
		return 0, err
	}
	failed := make(redispipe.Failed)
	var held []string
	r.forEach(ctx, failed, channels, func(channel string, exists int64) {
		if exists == 1 {
			held = append(held, channel)
		}
	}, "exists")
	for _, channel := range held {
		if _, err := r.eval(ctx, listAddScript, []string{r.keys.channelList()}, channel); err != nil {
			failed.Add([]string{channel}, err)
		}
	}
	return removed - int64(len(held)), failed.OrNil()
}

// forEach sends command, with the key ch_{channel} and args, for each channel, all in one round trip. answer gets
// what Redis says to each, if it is not nil; those that failed are noted in failed, and the others returned.
func (r *Redis) forEach(ctx context.Context, failed redispipe.Failed, channels []string, answer func(string, int64), command string, args ...any) (done []string) {
	cmds := make([]redis.Cmder, len(channels))
	ints := make([]*redis.IntCmd, len(channels))
	for i, channel := range channels {
		ints[i] = redis.NewIntCmd(ctx, append([]any{command, r.keys.channel(channel)}, args...)...)
		cmds[i] = ints[i]
	}
	_ = r.pipe.DoAll(ctx, cmds) // each has its own error
	done = make([]string, 0, len(channels))
	for i, channel := range channels {
		if err := ints[i].Err(); err != nil {
			failed[channel] = err
			continue
		}
		done = append(done, channel)
		if answer != nil {
			answer(channel, ints[i].Val())
		}
	}
	return done
}
