package main

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redistest"
)

// redisServer is the Redis of one measurement.
type redisServer struct {
	server *redistest.Server
	client *redis.Client
}

func startRedis(dir string) (*redisServer, error) {
	server, err := redistest.Launch(dir, "--maxmemory-policy", "noeviction")
	if err != nil {
		return nil, err
	}
	return &redisServer{server, redis.NewClient(&redis.Options{Addr: server.Addr})}, nil
}

func (s *redisServer) stop() {
	_ = s.client.Close() // errors do not matter, the server ends
	s.server.Kill()
}

// info returns one number of INFO.
func (s *redisServer) info(ctx context.Context, section, field string) (float64, error) {
	text, err := s.client.Info(ctx, section).Result()
	if err != nil {
		return 0, fmt.Errorf("INFO %s: %w", section, err)
	}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), field+":"); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("INFO %s has no %s", section, field)
}

// memoryOf returns the memory of all keys that match a pattern, in bytes.
func (s *redisServer) memoryOf(ctx context.Context, pattern string) (sum float64, err error) {
	for keys := s.client.Scan(ctx, 0, pattern, 1000).Iterator(); ; {
		if !keys.Next(ctx) {
			return sum, keys.Err()
		}
		size, err := s.client.MemoryUsage(ctx, keys.Val(), 0).Result() // 0: counts all elements
		if err != nil {
			return 0, err
		}
		sum += float64(size)
	}
}
