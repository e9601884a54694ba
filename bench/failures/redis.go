package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/bench/system"
	"switchboard/internal/redispipe"
	"switchboard/internal/redistest"
	"switchboard/internal/testbed"
	"switchboard/registry"
)

// redisStats reads the statistics of a Redis.
type redisStats struct{ client *redis.Client }

// launchRedis starts a Redis, which end ends.
func launchRedis(dir string) (server *redistest.Server, stats *redisStats, end func(), err error) {
	if server, err = redistest.Launch(dir, "--maxmemory-policy", "noeviction"); err != nil {
		return nil, nil, nil, err
	}
	if stats, err = connectRedis(server.Addr); err != nil {
		server.Kill()
		return nil, nil, nil, err
	}
	return server, stats, func() { stats.close(); server.Kill() }, nil
}

// connectRedis connects to the Redis. Its calls wait for a Redis that was just stopped.
func connectRedis(addr string) (*redisStats, error) {
	s := &redisStats{redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: 20 * time.Second})}
	return s, s.client.Ping(context.Background()).Err()
}

func (s *redisStats) close() { _ = s.client.Close() } // errors do not matter, the server ends

// commands returns the number of commands since the start of Redis, with those inside scripts.
func (s *redisStats) commands(ctx context.Context) (int64, error) { return s.sum(ctx, "calls") }

// during returns the number of commands that Redis executes while do runs.
func (s *redisStats) during(ctx context.Context, do func() error) (int64, error) {
	before, err := s.commands(ctx)
	if err == nil {
		err = do()
	}
	if err != nil {
		return 0, err
	}
	after, err := s.commands(ctx)
	return after - before, err
}

// failures returns how many of the commands failed or were refused.
func (s *redisStats) failures(ctx context.Context) (int64, error) {
	failed, err := s.sum(ctx, "failed_calls")
	if err != nil {
		return 0, err
	}
	rejected, err := s.sum(ctx, "rejected_calls")
	return failed + rejected, err
}

// sum returns the sum of a field of INFO commandstats over all commands.
func (s *redisStats) sum(ctx context.Context, field string) (sum int64, err error) {
	info, err := s.client.InfoMap(ctx, "commandstats").Result()
	if err != nil {
		return 0, fmt.Errorf("INFO commandstats: %w", err)
	}
	for _, fields := range info["Commandstats"] { // such as "calls=1,usec=2"
		for one := range strings.SplitSeq(fields, ",") {
			if value, found := strings.CutPrefix(one, field+"="); found {
				n, err := strconv.ParseInt(value, 10, 64)
				if err != nil {
					return 0, fmt.Errorf("INFO commandstats: %q: %w", fields, err)
				}
				sum += n
			}
		}
	}
	return sum, nil
}

// forgetDead removes the dead servers from the list, as a janitor does after it has released what
// they held.
func (s *redisStats) forgetDead(ctx context.Context) error {
	r := registry.NewRedis(redispipe.New(s.client, redispipe.Options{}), registry.Options{})
	live, err := r.Servers(ctx)
	if err != nil {
		return err
	}
	listed, err := r.Listed(ctx)
	if err != nil {
		return err
	}
	for _, id := range listed {
		if slices.ContainsFunc(live, func(s registry.Server) bool { return s.ID == id }) {
			continue
		}
		if err := r.Forget(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// readings returns how often a broker has compared its bindings with the store. A sweep after lost
// hints compares only queues.
func readings(ctx context.Context, broker system.Running) (int64, error) {
	n, err := testbed.API{HTTP: broker.(system.Monitored).HTTP()}.Metric(ctx, "switchboard_rebinds_total")
	return int64(n), err
}
