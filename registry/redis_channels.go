package registry

import (
	"context"
	"fmt"
)

// PruneChannel removes the channel from the list of channels if no server has bound it, and reports
// whether it removed it.
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
	removed, relisted, err := r.delist(ctx, channel)
	return removed > 0 && len(relisted) == 0, err
}

// ChannelServers returns the servers in ch_{channel}, live or not, sorted.
func (r *Redis) ChannelServers(ctx context.Context, channel string) ([]string, error) {
	servers, err := r.names(ctx, "smembers", r.keys.channel(channel))
	if err != nil {
		return nil, fmt.Errorf("servers of channel %s: %w", channel, err)
	}
	return servers, nil
}
