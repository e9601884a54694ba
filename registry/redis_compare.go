package registry

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// comparedPerCommand is the most channels in one command of HoldsChannels.
const comparedPerCommand = 128

// HeldCounts returns how many channels and clients the server's s_ch_ and s_c_ have.
func (r *Redis) HeldCounts(ctx context.Context, server string) (channels, clients int, err error) {
	heldChannels, err := r.count(ctx, "scard", r.keys.heldChannels(server))
	var heldClients int64
	if err == nil {
		heldClients, err = r.count(ctx, "scard", r.keys.heldClients(server))
	}
	if err != nil {
		return 0, 0, fmt.Errorf("what server %s holds: %w", server, err)
	}
	return int(heldChannels), int(heldClients), nil
}

// HoldsChannels returns for each of the channels whether the server's s_ch_ has it. A server adds a
// channel to s_ch_ before it writes a roster of the channel.
func (r *Redis) HoldsChannels(ctx context.Context, server string, channels []string) ([]bool, error) {
	holds := make([]bool, 0, len(channels))
	for len(channels) > 0 {
		n := min(len(channels), comparedPerCommand)
		cmd := redis.NewBoolSliceCmd(ctx, append([]any{"smismember", r.keys.heldChannels(server)}, anys(channels[:n])...)...)
		if err := r.pipe.Do(ctx, cmd); err != nil {
			return nil, fmt.Errorf("whether server %s holds channels: %w", server, err)
		}
		holds, channels = append(holds, cmd.Val()...), channels[n:]
	}
	return holds, nil
}

// RosterVersions returns the Version of the server's roster in each of the channels, in one round
// trip to each node of the store.
func (r *Redis) RosterVersions(ctx context.Context, server string, channels []string) ([]int64, error) {
	keys := make([]string, len(channels))
	for i, channel := range channels {
		keys[i] = r.keys.roster(channel, server)
	}
	values, err := r.fieldOfEach(ctx, keys, func(int) string { return versionField })
	if err != nil {
		return nil, fmt.Errorf("versions of %d rosters: %w", len(channels), err)
	}
	versions := make([]int64, len(channels))
	for i, value := range values {
		versions[i], _ = strconv.ParseInt(value, 10, 64) // as Roster does
	}
	return versions, nil
}

// fieldOfEach reads one field of each of many hashes. The value is "" if there is none.
func (r *Redis) fieldOfEach(ctx context.Context, keys []string, field func(i int) string) ([]string, error) {
	cmds := make([]redis.Cmder, len(keys))
	for i, key := range keys {
		cmds[i] = redis.NewStringCmd(ctx, "hget", key, field(i))
	}
	if err := r.pipe.DoAll(ctx, cmds); err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	values := make([]string, len(keys))
	for i, cmd := range cmds {
		var err error
		if values[i], err = cmd.(*redis.StringCmd).Result(); err != nil && !errors.Is(err, redis.Nil) {
			return nil, err
		}
	}
	return values, nil
}

// HeldCounts is like [Redis.HeldCounts].
func (m *Memory) HeldCounts(_ context.Context, server string) (channels, clients int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.heldChannels[server]), len(m.heldClients[server]), nil
}

// HoldsChannels is like [Redis.HoldsChannels].
func (m *Memory) HoldsChannels(_ context.Context, server string, channels []string) ([]bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	holds := make([]bool, len(channels))
	for i, channel := range channels {
		_, holds[i] = m.heldChannels[server][channel]
	}
	return holds, nil
}

// RosterVersions is like [Redis.RosterVersions].
func (m *Memory) RosterVersions(_ context.Context, server string, channels []string) ([]int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	versions := make([]int64, len(channels))
	for i, channel := range channels {
		if r := m.rosters[rosterKey{channel, server}]; r != nil {
			versions[i] = r.version
		}
	}
	return versions, nil
}
