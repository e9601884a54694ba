package main

import (
	"context"
	"errors"
	"time"

	"switchboard/bench/usage"
)

// withPublishers opens the publishers, calls do and closes them.
func (t *trial) withPublishers(do func(p *publishers) error) (err error) {
	p, err := t.publishers()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	return do(p)
}

// measureFanOut measures the memory of an idle connection, and then the cost of a delivery when
// each is a separate write.
func measureFanOut(ctx context.Context, t *trial) error {
	if err := t.measureIdleMemory(ctx); err != nil {
		return err
	}
	return t.withPublishers(func(p *publishers) error {
		before, err := t.readCounters()
		if err != nil {
			return err
		}
		if _, err := p.oneAtATime(ctx); err != nil {
			return err
		}
		return t.recordDeliveries(before)
	})
}

// measureIdleMemory opens the connections and measures their memory.
func (t *trial) measureIdleMemory(ctx context.Context) error {
	empty, emptyStore, err := t.memory(ctx)
	if err != nil {
		return err
	}
	before, err := t.readCounters()
	if err != nil {
		return err
	}
	if err := t.connect(ctx); err != nil {
		return err
	}
	now, err := t.readCounters()
	if err != nil {
		return err
	}
	full, fullStore, err := t.memory(ctx)
	if err != nil || t.contender.isFloor() {
		return err
	}
	n, spent := float64(t.size.connections), now.since(before)
	t.results = append(t.results, result{t.scenario.idleID, "cpu_us_per_connect", 0, micros(spent.server+spent.redis, int64(n))})
	t.results = append(t.results, result{t.scenario.idleID, "rss_bytes_per_conn", 0, float64(full-empty) / n})
	if t.redis != nil {
		t.results = append(t.results, result{t.scenario.idleID, "redis_bytes_per_conn", 0, (fullStore - emptyStore) / n})
	}
	return nil
}

// memory waits until the server's memory is steady and returns it, with the memory of its Redis.
func (t *trial) memory(ctx context.Context) (server int64, store float64, err error) {
	t.show("waiting until the memory is steady")
	if t.contender.isFloor() {
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

// recordDeliveries records the cost of a delivery since before.
func (t *trial) recordDeliveries(before counters) error {
	now, err := t.readCounters()
	if err != nil {
		return err
	}
	spent := now.since(before)
	t.record("cpu_us_per_delivery", micros(spent.server+spent.redis, spent.received))
	t.record("deliveries_per_s", float64(spent.received)/now.at.Sub(before.at).Seconds())
	t.record("generator_us_per_delivery", micros(spent.own, spent.received))
	t.record("deliveries_per_read", float64(spent.received)/float64(max(1, spent.reads)))
	if t.redis != nil {
		t.record("redis_us_per_delivery", micros(spent.redis, spent.received))
	}
	return nil
}

// measureBusyChannel measures many publishers on one channel, where a server can coalesce messages
// into one write.
func measureBusyChannel(ctx context.Context, t *trial) error {
	return t.measureClosedLoop(ctx, func(before counters, _ int64) error { return t.recordDeliveries(before) })
}

// measureSingle measures channels with one subscriber each.
func measureSingle(ctx context.Context, t *trial) error {
	return t.measureClosedLoop(ctx, t.recordPushes)
}

// measureClosedLoop measures a closed loop, and records its cost with record. It first pushes once
// to each channel, so that the server's first work for a channel is not counted.
func (t *trial) measureClosedLoop(ctx context.Context, record func(before counters, pushes int64) error) error {
	if err := t.connect(ctx); err != nil {
		return err
	}
	return t.withPublishers(func(p *publishers) error {
		if err := p.pushToEach(ctx, true); err != nil {
			return err
		}
		before, err := t.readCounters()
		if err != nil {
			return err
		}
		pushes, err := p.closedLoop(ctx, t.size.time)
		if err != nil {
			return err
		}
		return record(before, pushes)
	})
}

// recordPushes records the cost of a push since before, and the pushes per second.
func (t *trial) recordPushes(before counters, pushes int64) error {
	t.record("pushes_per_s", float64(pushes)/time.Since(before.at).Seconds())
	return t.recordPushCost(before, pushes)
}

// recordPushCost records the cost of a push since before.
func (t *trial) recordPushCost(before counters, pushes int64) error {
	now, err := t.readCounters()
	if err != nil {
		return err
	}
	spent := now.since(before)
	t.record("cpu_us_per_push", micros(spent.server+spent.redis, pushes))
	t.record("generator_us_per_push", micros(spent.own, pushes))
	if t.redis != nil {
		t.record("redis_us_per_push", micros(spent.redis, pushes))
	}
	return nil
}
