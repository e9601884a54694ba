package main

import (
	"context"
	"time"
)

// measureHerd cuts all connections, pushes a message to each client, and measures how all clients
// reconnect and receive the messages that they missed.
func measureHerd(ctx context.Context, t *trial) error {
	if err := t.connect(ctx); err != nil {
		return err
	}
	return t.withPublishers(func(p *publishers) error {
		if err := p.pushToEach(ctx, true); err != nil {
			return err
		}
		if err := t.awaitEvents(ctx); err != nil {
			return err
		}
		t.show("cutting all connections")
		if err := t.swarm.Disconnect(); err != nil {
			return err
		}
		if err := t.awaitQuiet(ctx); err != nil {
			return err
		}
		if err := p.pushToEach(ctx, false); err != nil {
			return err
		}
		if err := t.awaitQuiet(ctx); err != nil {
			return err
		}
		return t.measureReconnect(ctx)
	})
}

// measureReconnect measures from the first new connection until each client has received the
// message that it missed.
func (t *trial) measureReconnect(ctx context.Context) error {
	n := t.size.connections
	var commands float64
	var err error
	if t.redis != nil {
		if commands, err = t.redis.info(ctx, "stats", "total_commands_processed"); err != nil {
			return err
		}
	}
	janitor, err := t.janitorCPU()
	if err != nil {
		return err
	}
	before, err := t.readCounters()
	if err != nil {
		return err
	}
	if err := t.swarm.Reconnect(ctx, func() { t.show("%d of %d clients are connected again", t.swarm.Ready(), n) }); err != nil {
		return err
	}
	err = t.swarm.Until(ctx, "receive what was missed", func() bool { return t.received()-before.received >= int64(n) })
	if err != nil {
		return err
	}
	now, err := t.readCounters()
	if err != nil {
		return err
	}
	if err := t.recordJanitorCPU(janitor); err != nil {
		return err
	}
	spent := now.since(before)
	t.record("cpu_us_per_conn", micros(spent.server, int64(n)))
	t.record("seconds", float64(now.at.Sub(before.at))/float64(time.Second))
	if t.redis == nil {
		return nil
	}
	last, err := t.redis.info(ctx, "stats", "total_commands_processed")
	t.record("redis_us_per_conn", micros(spent.redis, int64(n)))
	t.record("redis_commands_per_conn", (last-commands)/float64(n))
	return err
}
