package main

import (
	"context"
	"fmt"
	"strconv"

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

// info returns one number of INFO. The name of the section is that of its heading, such as Memory.
func (s *redisServer) info(ctx context.Context, section, field string) (float64, error) {
	info, err := s.client.InfoMap(ctx, section).Result()
	if err != nil {
		return 0, fmt.Errorf("INFO %s: %w", section, err)
	}
	return strconv.ParseFloat(info[section][field], 64)
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
