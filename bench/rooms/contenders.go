package main

import (
	"context"
	"errors"
	"os"

	"switchboard/bench/system"
	"switchboard/internal/redistest"
)

// contender is one server that is measured.
type contender struct {
	name   string
	notes  string
	redis  bool                                                               // needs a Redis
	start  func(ctx context.Context, r *run, dir, redis string) (game, error) // starts a server
	trials []func(*trial, context.Context) error                              // each with a server of its own
}

const (
	inMemory  = "switchboard memory"
	overRedis = "switchboard redis"
	eachPatch = "colyseus each"
	batched   = "colyseus 50 ms"
)

// contenders returns the servers in the order of the report.
func contenders() []contender {
	all := []func(*trial, context.Context) error{(*trial).small, (*trial).large, (*trial).empty}
	withHolds := append(all[:len(all):len(all)], (*trial).holds)
	return []contender{
		{name: inMemory, start: startBroker, trials: withHolds,
			notes: "one broker without Redis; every change is sent at once, stored, numbered and acknowledged to its writer"},
		{name: overRedis, redis: true, start: startBroker, trials: withHolds,
			notes: "the same over one Redis (no persistence), so that any broker serves any room; CPU is that of broker and Redis"},
		{name: eachPatch, start: startColyseus("each"), trials: all[:2],
			notes: "`broadcastPatch` after each change, which sends it at once as the broker does; not acknowledged"},
		{name: batched, start: startColyseus("50"), trials: all,
			notes: "the default patch rate: changes wait up to 50 ms and are sent together; not acknowledged"},
	}
}

func startBroker(ctx context.Context, r *run, dir, redis string) (game, error) {
	b := &system.Switchboard{Program: r.broker, Env: brokerSettings}
	running, err := b.Start(ctx, system.Setup{Dir: dir, Redis: redis, Transport: "http"})
	if err != nil {
		return nil, err
	}
	return switchboardGame{running}, nil
}

func startColyseus(patches string) func(context.Context, *run, string, string) (game, error) {
	return func(ctx context.Context, _ *run, _, _ string) (game, error) {
		running, err := system.StartColyseus(ctx, patches, nil)
		if err != nil {
			return nil, err
		}
		return colyseusGame{running}, nil
	}
}

// measure starts the server, does one trial and stops the server.
func (r *run) measure(ctx context.Context, c contender, do func(*trial, context.Context) error) (err error) {
	dir, err := os.MkdirTemp("", "rooms-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	m, addr := &meter{}, ""
	if c.redis {
		if m.redis, err = redistest.Launch(dir, "--maxmemory-policy", "noeviction"); err != nil {
			return err
		}
		defer m.redis.Kill()
		addr = m.redis.Addr
	}
	if m.game, err = c.start(ctx, r, dir, addr); err != nil {
		return err
	}
	t := &trial{run: r, contender: c, meter: m, players: &players{game: m.game}}
	defer func() {
		t.players.close()
		err = errors.Join(err, m.game.Stop())
	}()
	return do(t, ctx)
}
