package main

import (
	"context"
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
	janitor, err := t.janitorCPU()
	if err != nil {
		return err
	}
	var spent counters
	commands, err := t.commands(ctx, func() (err error) {
		start := t.received()
		spent, err = t.spent(func() error {
			err := t.swarm.Reconnect(ctx, func() { t.show("%d of %d clients are connected again", t.swarm.Ready(), n) })
			if err != nil {
				return err
			}
			return t.swarm.Until(ctx, "receive what was missed", func() bool { return t.received()-start >= int64(n) })
		})
		return err
	})
	if err != nil {
		return err
	}
	t.record("cpu_us_per_conn", micros(spent.server, int64(n)))
	t.record("seconds", spent.elapsed.Seconds())
	if t.redis != nil {
		t.record("redis_us_per_conn", micros(spent.redis, int64(n)))
		t.record("redis_commands_per_conn", commands/float64(n))
	}
	return t.recordJanitorCPU(janitor)
}
