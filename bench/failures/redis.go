package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisStats reads the statistics of a Redis.
type redisStats struct{ client *redis.Client }

// connectRedis connects to the Redis. Its calls wait for a Redis that was just stopped.
func connectRedis(addr string) (*redisStats, error) {
	s := &redisStats{redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: 20 * time.Second})}
	return s, s.client.Ping(context.Background()).Err()
}

func (s *redisStats) close() { _ = s.client.Close() } // errors do not matter, the server ends

// commands returns the number of commands since the start of Redis, with those inside scripts.
func (s *redisStats) commands(ctx context.Context) (sum int64, err error) {
	text, err := s.client.Info(ctx, "commandstats").Result()
	if err != nil {
		return 0, fmt.Errorf("INFO commandstats: %w", err)
	}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		_, fields, ok := strings.Cut(lines.Text(), ":calls=")
		if !ok {
			continue
		}
		calls, _, _ := strings.Cut(fields, ",")
		n, err := strconv.ParseInt(calls, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("INFO commandstats: %q: %w", lines.Text(), err)
		}
		sum += n
	}
	return sum, nil
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
