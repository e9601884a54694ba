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

// store is a Redis of one measurement.
type store struct {
	server *redistest.Server
	client *redis.Client
}

func startStore(dir string) (*store, error) {
	server, err := redistest.Launch(dir, "--maxmemory-policy", "noeviction")
	if err != nil {
		return nil, err
	}
	return &store{server, redis.NewClient(&redis.Options{Addr: server.Addr})}, nil
}

func (s *store) stop() {
	_ = s.client.Close() // it is gone with the server
	s.server.Kill()
}

// info is one number of INFO.
func (s *store) info(ctx context.Context, section, field string) (float64, error) {
	text, err := s.client.Info(ctx, section).Result()
	if err != nil {
		return 0, fmt.Errorf("INFO %s: %w", section, err)
	}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), field+":"); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("INFO %s does not tell %s", section, field)
}
