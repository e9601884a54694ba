package main

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/bench/usage"
	"switchboard/internal/redistest"
)

// meter reads what a server uses.
type meter struct {
	game  game
	redis *redistest.Server // nil without one
}

// reading is the CPU time of the server since its start.
type reading struct {
	at            time.Time
	server, redis time.Duration
}

// total is the CPU time of the server and its Redis.
func (r reading) total() time.Duration { return r.server + r.redis }

func (r reading) since(before reading) reading {
	return reading{r.at, r.server - before.server, r.redis - before.redis}
}

func (m *meter) cpu() (r reading, err error) {
	if r.server, err = usage.CPU(m.game.PIDs()...); err != nil {
		return r, err
	}
	if m.redis != nil {
		if r.redis, err = usage.CPU(m.redis.PID()); err != nil {
			return r, err
		}
	}
	r.at = time.Now()
	return r, nil
}

// memory waits until the resident memory of the server is steady, and returns it with that of Redis
// in use.
func (m *meter) memory(ctx context.Context) (server, store int64, err error) {
	server, _, err = usage.Settle(ctx, func() (int64, error) { return usage.Resident(m.game.PIDs()...) }, pause)
	if err != nil || m.redis == nil {
		return server, 0, err
	}
	client := redis.NewClient(&redis.Options{Addr: m.redis.Addr})
	defer client.Close()
	info, err := client.InfoMap(ctx, "memory").Result()
	if err != nil {
		return server, 0, err
	}
	store, err = number(info["Memory"]["used_memory"])
	return server, store, err
}

// pause waits for a time.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
