package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisServer is the Redis that the broker uses.
type redisServer struct{ client *redis.Client }

func connectRedis(ctx context.Context, url string) (*redisServer, error) {
	opts, err := redis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("--redis: %w", err)
	}
	s := &redisServer{redis.NewClient(opts)}
	if err := s.client.Ping(ctx).Err(); err != nil {
		return nil, errors.Join(fmt.Errorf("redis at %s: %w", opts.Addr, err), s.client.Close())
	}
	return s, nil
}

// cpu returns the user and system time of all threads of the server.
func (s *redisServer) cpu(ctx context.Context) (total time.Duration, err error) {
	info, err := s.client.Info(ctx, "cpu").Result()
	if err != nil {
		return 0, fmt.Errorf("INFO cpu: %w", err)
	}
	lines := bufio.NewScanner(strings.NewReader(info))
	found := 0
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		if name != "used_cpu_sys" && name != "used_cpu_user" {
			continue
		}
		seconds, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("INFO cpu: %s: %w", name, err)
		}
		total += time.Duration(seconds * float64(time.Second))
		found++
	}
	if found != 2 {
		return 0, errors.New("INFO cpu lacks used_cpu_sys and used_cpu_user")
	}
	return total, nil
}

// removeTimeout limits the removal of the run's keys.
const removeTimeout = time.Minute

// close removes the keys with the prefix, which only this run uses, and disconnects.
func (s *redisServer) close(prefix string) error {
	ctx, cancel := context.WithTimeout(context.Background(), removeTimeout) // also after an interrupt
	defer cancel()
	var errs []error
	for cursor := uint64(0); ; {
		keys, next, err := s.client.Scan(ctx, cursor, prefix+"*", 1000).Result()
		if err == nil && len(keys) > 0 {
			err = s.client.Unlink(ctx, keys...).Err()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("remove the keys %s*: %w", prefix, err))
			break
		}
		if cursor = next; cursor == 0 {
			break
		}
	}
	return errors.Join(append(errs, s.client.Close())...)
}
