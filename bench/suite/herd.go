package main

import (
	"context"
	"time"
)

// measureHerd cuts everybody off, pushes a message to each, and lets all come back at once: whoever was away must
// be given what he missed.
func measureHerd(ctx context.Context, t *trial) error {
	if err := t.open(ctx); err != nil {
		return err
	}
	return t.with(func(p *publishers) error {
		if err := p.each(ctx, true); err != nil {
			return err
		}
		if err := t.awaitEvents(ctx); err != nil {
			return err
		}
		t.show("cutting everybody off")
		if err := t.swarm.Cut(); err != nil {
			return err
		}
		if err := t.quiet(ctx); err != nil {
			return err
		}
		if err := p.each(ctx, false); err != nil {
			return err
		}
		if err := t.quiet(ctx); err != nil {
			return err
		}
		return t.comeBack(ctx)
	})
}

// comeBack measures from the first connection until everybody has what he missed.
func (t *trial) comeBack(ctx context.Context) error {
	n := t.size.connections
	var commands float64
	var err error
	if t.redis != nil {
		if commands, err = t.redis.info(ctx, "stats", "total_commands_processed"); err != nil {
			return err
		}
	}
	janitor, err := t.janitor()
	if err != nil {
		return err
	}
	before, err := t.sample()
	if err != nil {
		return err
	}
	if err := t.swarm.Reopen(ctx, func() { t.show("%d of %d are back", t.swarm.Ready(), n) }); err != nil {
		return err
	}
	err = t.swarm.Until(ctx, "receive what was missed", func() bool { return t.received()-before.received >= int64(n) })
	if err != nil {
		return err
	}
	now, err := t.sample()
	if err != nil {
		return err
	}
	if err := t.foundJanitor(janitor); err != nil {
		return err
	}
	spent := now.since(before)
	t.found("cpu_us_per_conn", micros(spent.server, int64(n)))
	t.found("seconds", float64(now.at.Sub(before.at))/float64(time.Second))
	if t.redis == nil {
		return nil
	}
	last, err := t.redis.info(ctx, "stats", "total_commands_processed")
	t.found("redis_us_per_conn", micros(spent.redis, int64(n)))
	t.found("redis_commands_per_conn", (last-commands)/float64(n))
	return err
}
