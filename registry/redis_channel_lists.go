package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"switchboard/internal/redispipe"
	"switchboard/internal/slots"
)

// movedAtOnce is about how many names MoveChannelList moves in one step.
const movedAtOnce = 500

// KeepChannelList sets whether BindChannel and ListChannels in a Cluster add channels to ch_list,
// too. It is for servers that read only ch_list, see [Server.ReadsChannelSets]. It is set until the
// first call.
func (r *Redis) KeepChannelList(keep bool) { r.listForFormer.Store(keep) }

// ListedIn reports whether the slots have a list to which BindChannel adds the channel. If their
// master fails over, the channel may be missing there.
func (r *Redis) ListedIn(channel string, of *slots.Set) bool {
	if !r.cluster {
		return of.HasKey(r.keys.channelList())
	}
	return of.HasKey(r.keys.channelSet(setOf(channel))) || r.listForFormer.Load() && of.HasKey(r.keys.channelList())
}

// MoveChannelList moves the names in ch_list to the sets of a Cluster, in small steps, and returns
// how many it moved. It does nothing while a server is listed that reads only ch_list, or whose
// lease, which would say so, has ended. A channel that is unbound meanwhile may stay in its set
// without servers: see PruneChannel.
func (r *Redis) MoveChannelList(ctx context.Context) (moved int, err error) {
	if !r.cluster {
		return 0, nil
	}
	readers := map[string]struct{}{}
	for cursor := ""; ; {
		names, next, err := r.scanSet(ctx, r.keys.channelList(), "", cursor, movedAtOnce)
		if err == nil && len(names) > 0 {
			var all bool
			if all, err = r.allReadSets(ctx, readers); err == nil && all {
				var n int64
				n, err = r.moveToSets(ctx, names)
				moved += int(n)
			} else if err == nil {
				return moved, nil
			}
		}
		if err != nil {
			return moved, fmt.Errorf("move the list of channels: %w", err)
		}
		if cursor = next; cursor == "" {
			return moved, nil
		}
	}
}

// allReadSets reports whether all listed servers read the sets. It adds those that do to readers,
// and asks only for the others.
func (r *Redis) allReadSets(ctx context.Context, readers map[string]struct{}) (bool, error) {
	ids, err := r.names(ctx, "smembers", r.keys.serverList())
	if err != nil {
		return false, err
	}
	ids = slices.DeleteFunc(ids, func(id string) bool {
		_, reads := readers[id]
		return reads
	})
	leases := make([]map[string]string, len(ids))
	group, ctx := errgroup.WithContext(ctx)
	for i, id := range ids {
		group.Go(func() (err error) {
			leases[i], err = r.fields(ctx, r.keys.lease(id))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return false, err
	}
	for i, fields := range leases {
		if !parseServer(ids[i], fields).ReadsChannelSets() {
			return false, nil
		}
		readers[ids[i]] = struct{}{}
	}
	return true, nil
}

// moveToSets adds the names to their sets, and then removes them from ch_list.
func (r *Redis) moveToSets(ctx context.Context, names []string) (moved int64, err error) {
	added := r.changeLists(ctx, "sadd", names, false)
	failed := make(redispipe.Failed)
	added.addErrors(failed)
	names = slices.DeleteFunc(names, func(name string) bool { return failed[name] != nil })
	if len(names) > 0 {
		moved, err = r.count(ctx, append([]any{"srem", r.keys.channelList()}, anys(names)...)...)
	}
	if err == nil {
		err = added.err()
	}
	return moved, err
}

// listPart is one set of the list of channels, with the channels that a command adds or removes.
type listPart struct {
	key      string
	channels []string
	reply    *redis.IntCmd
}

// listParts is the sets that a change of the list of channels concerns.
type listParts []listPart

// addErrors adds the errors of the channels to failed.
func (l listParts) addErrors(failed redispipe.Failed) {
	for _, p := range l {
		failed.Add(p.channels, p.reply.Err())
	}
}

// err returns the first error.
func (l listParts) err() error {
	for _, p := range l {
		if err := p.reply.Err(); err != nil {
			return err
		}
	}
	return nil
}

// partsOf returns the sets that have the channels. In a Cluster, the last one is ch_list if former
// is set.
func (r *Redis) partsOf(channels []string, former bool) listParts {
	if len(channels) == 0 {
		return nil
	}
	if !r.cluster {
		return listParts{{key: r.keys.channelList(), channels: channels}}
	}
	var sets [channelSets][]string
	for _, channel := range channels {
		n := setOf(channel)
		sets[n] = append(sets[n], channel)
	}
	var parts listParts
	for n, channels := range sets {
		if len(channels) > 0 {
			parts = append(parts, listPart{key: r.keys.channelSet(n), channels: channels})
		}
	}
	if former {
		parts = append(parts, listPart{key: r.keys.channelList(), channels: channels})
	}
	return parts
}

// changeLists adds the channels to the list of channels with the command "sadd", or removes them
// with "srem", and sends more in the same round trip. former is as in partsOf.
func (r *Redis) changeLists(ctx context.Context, command string, channels []string, former bool, more ...redis.Cmder) listParts {
	parts := r.partsOf(channels, former)
	cmds := make([]redis.Cmder, 0, len(parts)+len(more))
	for i := range parts {
		parts[i].reply = redis.NewIntCmd(ctx, append([]any{command, parts[i].key}, anys(parts[i].channels)...)...)
		cmds = append(cmds, parts[i].reply)
	}
	if cmds = append(cmds, more...); len(cmds) > 1 {
		_ = r.pipe.DoAll(ctx, cmds) // each has its own error
	} else if err := r.pipe.Do(ctx, cmds[0]); err != nil {
		cmds[0].SetErr(err)
	}
	return parts
}

// delist removes channels without servers from the list of channels, and returns how many names it
// removed. If a server bound a channel meanwhile, delist adds the channel again, since the server
// may have added it just before the removal, and returns it.
//
// In a Cluster delist also removes the channels from ch_list, at any time: a server of a former
// version may have added them.
func (r *Redis) delist(ctx context.Context, channels ...string) (removed int64, bound []string, err error) {
	parts := r.changeLists(ctx, "srem", channels, true)
	failed := make(redispipe.Failed)
	parts.addErrors(failed)
	if !slices.ContainsFunc(parts, func(p listPart) bool { return p.reply.Err() == nil }) {
		return 0, nil, failed
	}
	for _, p := range parts {
		removed += p.reply.Val()
	}
	// Also those with an error: they may have been removed from one of two lists.
	r.forEach(ctx, failed, channels, func(channel string, exists int64) {
		if exists == 1 {
			bound = append(bound, channel)
		}
	}, "exists")
	former := r.listForFormer.Load() || parts[len(parts)-1].reply.Val() > 0
	for _, channel := range bound {
		for _, p := range r.partsOf([]string{channel}, former) {
			if _, err := r.pipe.EvalInt(ctx, listAddScript, []string{p.key}, channel); err != nil {
				failed.Add([]string{channel}, err)
			}
		}
	}
	return removed, bound, failed.OrNil()
}

// ReadsChannelSets reports whether the server reads the sets of the list of channels in a Cluster.
// Otherwise it reads only ch_list.
func (s Server) ReadsChannelSets() bool {
	return slices.Contains(strings.Split(s.Can, ","), canReadSets)
}
