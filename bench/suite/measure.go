package main

import (
	"context"
	"errors"
	"time"

	"switchboard/bench/usage"
)

// with opens publishers for the length of do.
func (t *trial) with(do func(p *publishers) error) (err error) {
	p, err := t.publishers()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	return do(p)
}

// measureFanOut is what a connection holds while it is idle, and then what a delivery costs when each is
// a write of its own.
func measureFanOut(ctx context.Context, t *trial) error {
	if err := t.idle(ctx); err != nil {
		return err
	}
	return t.with(func(p *publishers) error {
		before, err := t.sample()
		if err != nil {
			return err
		}
		if _, err := p.oneAtATime(ctx); err != nil {
			return err
		}
		return t.deliveries(before)
	})
}

// idle opens the connections and measures the memory that they take.
func (t *trial) idle(ctx context.Context) error {
	empty, emptyStore, err := t.memory(ctx)
	if err != nil {
		return err
	}
	if err := t.open(ctx); err != nil {
		return err
	}
	full, fullStore, err := t.memory(ctx)
	if err != nil || t.contender.name == "floor" {
		return err
	}
	n := float64(t.size.connections)
	t.figures = append(t.figures, figure{t.scenario.also, "rss_bytes_per_conn", 0, float64(full-empty) / n})
	if t.redis != nil {
		t.figures = append(t.figures, figure{t.scenario.also, "redis_bytes_per_conn", 0, (fullStore - emptyStore) / n})
	}
	return nil
}

// memory is that of the server once it is steady, and that of its Redis.
func (t *trial) memory(ctx context.Context) (server int64, store float64, err error) {
	t.show("waiting until the memory is steady")
	if t.contender.name == "floor" {
		return 0, 0, nil
	}
	if server, _, err = usage.Settle(ctx, t.resident, t.swarm.Idle); err != nil {
		return 0, 0, err
	}
	if t.redis != nil {
		store, err = t.redis.info(ctx, "memory", "used_memory")
	}
	return server, store, err
}

// deliveries notes what each delivery since before cost.
func (t *trial) deliveries(before sample) error {
	now, err := t.sample()
	if err != nil {
		return err
	}
	spent := now.since(before)
	t.found("cpu_us_per_delivery", micros(spent.server+spent.redis, spent.received))
	t.found("deliveries_per_s", float64(spent.received)/now.at.Sub(before.at).Seconds())
	t.found("generator_us_per_delivery", micros(spent.own, spent.received))
	if t.redis != nil {
		t.found("redis_us_per_delivery", micros(spent.redis, spent.received))
	}
	return nil
}

// measureBusyChannel is many publishers on one channel, so that a server can write several messages at once.
func measureBusyChannel(ctx context.Context, t *trial) error {
	return t.closedLoop(ctx, func(before sample, _ int64) error { return t.deliveries(before) })
}

// measureSingle is a message to one subscriber at a time.
func measureSingle(ctx context.Context, t *trial) error {
	return t.closedLoop(ctx, t.pushes)
}

// closedLoop measures a closed loop, behind one push to each channel: the server has then made what it makes once.
func (t *trial) closedLoop(ctx context.Context, found func(before sample, pushes int64) error) error {
	if err := t.open(ctx); err != nil {
		return err
	}
	return t.with(func(p *publishers) error {
		if err := p.each(ctx, true); err != nil {
			return err
		}
		before, err := t.sample()
		if err != nil {
			return err
		}
		pushes, err := p.loop(ctx, t.size.time)
		if err != nil {
			return err
		}
		return found(before, pushes)
	})
}

// pushes notes what each push since before cost, and how many there were in a second.
func (t *trial) pushes(before sample, pushes int64) error {
	t.found("pushes_per_s", float64(pushes)/time.Since(before.at).Seconds())
	return t.cost(before, pushes)
}

// cost notes what each push since before cost.
func (t *trial) cost(before sample, pushes int64) error {
	now, err := t.sample()
	if err != nil {
		return err
	}
	spent := now.since(before)
	t.found("cpu_us_per_push", micros(spent.server+spent.redis, pushes))
	t.found("generator_us_per_push", micros(spent.own, pushes))
	if t.redis != nil {
		t.found("redis_us_per_push", micros(spent.redis, pushes))
	}
	return nil
}
