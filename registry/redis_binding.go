package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
)

// BindChannel records that the server has a subscriber of the channel: in s_ch_, then ch_, then the
// list of channels. Repeating the call is harmless, and restores entries that were lost. It returns
// ErrDead if the server was declared dead. Calls of BindChannel and UnbindChannel for one server
// and channel must not overlap. Concurrent calls share round trips: see [redispipe.Coalescer].
func (r *Redis) BindChannel(ctx context.Context, server, channel string) error {
	if err := r.bindChannel.Do(ctx, server, channel); err != nil {
		return fmt.Errorf("bind channel %s: %w", channel, err)
	}
	return nil
}

// BindChannels binds each channel like BindChannel. It returns one error for each channel, in the
// order of channels.
func (r *Redis) BindChannels(ctx context.Context, server string, channels []string) []error {
	_, errs := r.RebindChannels(ctx, server, channels, all)
	return errs
}

// RebindChannels is BindChannels for channels that the server has bound before. It also returns
// those whose ch_ lacked the server: meanwhile, others may have missed what it has there, and a
// janitor may have removed the channel from the list of channels. A call that fails may have
// restored them, too. Only these channels are added to the list of channels, and those for which
// list returns true: the list has the others unless a failover lost them there, see ListChannels.
func (r *Redis) RebindChannels(ctx context.Context, server string, channels []string, list func(channel string) bool) (restored []string, errs []error) {
	errs = make([]error, 0, len(channels))
	for chunk := range slices.Chunk(channels, redispipe.MaxNames) {
		back, failed := r.bindEach(ctx, server, chunk, list)
		restored = append(restored, back...)
		for _, channel := range chunk {
			err := redispipe.ErrorOf(failed, channel)
			if err != nil {
				err = fmt.Errorf("bind channel %s: %w", channel, err)
			}
			errs = append(errs, err)
		}
	}
	return restored, errs
}

// UnbindChannel reverts BindChannel: it removes the server from ch_; then the channel from the list
// of channels, if ch_ is empty now; then the channel from s_ch_. If another server bound the
// channel meanwhile, the channel is added to the list again. UnbindChannel also removes the
// server's roster of the channel, and the server from the channel's watchers.
func (r *Redis) UnbindChannel(ctx context.Context, server, channel string) error {
	if err := r.unbindChannel.Do(ctx, server, channel); err != nil {
		return fmt.Errorf("unbind channel %s: %w", channel, err)
	}
	return nil
}

// all is the argument of bindEach for channels that must all be added to the list of channels.
func all(string) bool { return true }

// bindChannels is bindEach with all lists.
func (r *Redis) bindChannels(ctx context.Context, server string, channels []string) error {
	_, err := r.bindEach(ctx, server, channels, all)
	return err
}

// bindEach makes the steps of BindChannel, each for all channels in one round trip. It waits
// for the replies of a step before the next one: in a Cluster the steps go to different nodes, so
// the order in a pipeline is not enough. It returns the channels to which the server was added.
//
// If list returns true for a channel, all steps run every time, although the list of channels
// changes only with a channel's first server. It may lack the channel: the first server died before
// the last step, or a failover lost the entry. If a second server skipped the step, the channel
// would stay missing.
//
// The tombstone is checked in the first step and in the last. A server may be suspended after the
// first check, and then be declared dead and cleaned up. No janitor would remove a binding that it
// makes after that, so it reverts the binding itself. If the server is declared dead after the
// second check, the channel is still in its s_ch_.
func (r *Redis) bindEach(ctx context.Context, server string, channels []string, list func(channel string) bool) (added []string, err error) {
	if err := r.hold(ctx, r.keys.heldChannels(server), server, channels...); err != nil {
		return nil, err
	}
	failed := make(redispipe.Failed)
	listed := make([]string, 0, len(channels))
	channels = r.forEach(ctx, failed, channels, func(channel string, n int64) {
		if n > 0 {
			added = append(added, channel)
		}
		if n > 0 || list(channel) {
			listed = append(listed, channel)
		}
	}, "sadd", server)
	if len(channels) == 0 {
		return added, failed.OrNil()
	}
	dead := redis.NewIntCmd(ctx, "exists", r.keys.tombstone(server))
	r.changeLists(ctx, "sadd", listed, r.listForFormer.Load(), dead).addErrors(failed)
	err = dead.Err()
	if err == nil && dead.Val() == 1 {
		err = errors.Join(ErrDead, r.unbindChannels(ctx, server, channels))
	}
	failed.Add(channels, err)
	return added, failed.OrNil()
}

// unbindChannels makes the steps of UnbindChannel, each for all channels in one round trip.
func (r *Redis) unbindChannels(ctx context.Context, server string, channels []string) error {
	failed := make(redispipe.Failed)
	var unused []string
	channels = r.forEach(ctx, failed, channels, nil, "srem", server)
	if err := r.dropPresence(ctx, server, channels); err != nil {
		failed.Add(channels, err)
		return failed
	}
	channels = r.forEach(ctx, failed, channels, func(channel string, servers int64) {
		if servers == 0 {
			unused = append(unused, channel)
		}
	}, "scard")
	if len(unused) > 0 {
		_, _, err := r.delist(ctx, unused...)
		for _, channel := range unused {
			failed.Add([]string{channel}, redispipe.ErrorOf(err, channel))
		}
		channels = slices.DeleteFunc(channels, func(channel string) bool { return failed[channel] != nil })
	}
	if len(channels) > 0 {
		_, err := r.count(ctx, append([]any{"srem", r.keys.heldChannels(server)}, anys(channels)...)...)
		failed.Add(channels, err)
	}
	return failed.OrNil()
}

// forEach sends the command, with the key ch_{channel} and args, for each channel, all in one round
// trip. It calls reply, if not nil, with each reply. It adds errors to failed, and returns the
// channels without an error.
func (r *Redis) forEach(
	ctx context.Context, failed redispipe.Failed, channels []string, reply func(channel string, n int64),
	command string, args ...any,
) (done []string) {
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
		if reply != nil {
			reply(channel, ints[i].Val())
		}
	}
	return done
}
