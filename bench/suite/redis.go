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
