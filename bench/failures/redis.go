package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
	"switchboard/internal/redistest"
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
	text, err := s.client.Info(ctx, "commandstats").Result()
	if err != nil {
		return 0, fmt.Errorf("INFO commandstats: %w", err)
	}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		_, fields, ok := strings.Cut(lines.Text(), ":")
		if !ok || !strings.HasPrefix(lines.Text(), "cmdstat_") {
			continue
		}
		for one := range strings.SplitSeq(fields, ",") {
			value, found := strings.CutPrefix(one, field+"=")
			if !found {
				continue
			}
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return 0, fmt.Errorf("INFO commandstats: %q: %w", lines.Text(), err)
			}
			sum += n
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
func readings(ctx context.Context, metrics string) (sum int64, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, metrics, nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	found := 0
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if name != "switchboard_rebinds_total" {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		sum, found = sum+int64(n), found+1
	}
	if err := lines.Err(); err != nil || found != 1 {
		return 0, fmt.Errorf("%s has %d counters of rebinds: %w", metrics, found, err)
	}
	return sum, nil
}
