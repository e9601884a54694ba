package main

import (
	"context"
	"errors"

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
		return t.measureEachDelivery(ctx, p)
	})
}

// measureEachDelivery measures one push at a time.
func (t *trial) measureEachDelivery(ctx context.Context, p *publishers) error {
	spent, err := t.spent(func() error { _, err := p.oneAtATime(ctx); return err })
	if err == nil {
		t.recordDeliveries(spent)
	}
	return err
}

// measureIdleMemory opens the connections and measures their memory.
func (t *trial) measureIdleMemory(ctx context.Context) error {
	empty, emptyStore, err := t.memory(ctx)
	if err != nil {
		return err
	}
	spent, err := t.spent(func() error { return t.connect(ctx) })
	if err != nil {
		return err
	}
	full, fullStore, err := t.memory(ctx)
	if err != nil || t.contender.isFloor() {
		return err
	}
	n := float64(t.size.connections)
	t.results = append(t.results, result{t.scenario.idleID, "cpu_us_per_connect", 0, micros(spent.total(), int64(n))})
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
	if server, _, err = usage.Settle(ctx, t.resident, t.idle); err != nil {
		return 0, 0, err
	}
	if t.redis != nil {
		store, err = t.redis.info(ctx, "Memory", "used_memory")
	}
	return server, store, err
}

// recordDeliveries records the cost of a delivery.
func (t *trial) recordDeliveries(spent counters) {
	t.record("cpu_us_per_delivery", micros(spent.total(), spent.received))
	t.record("deliveries_per_s", spent.perSecond(spent.received))
	t.record("generator_us_per_delivery", micros(spent.own, spent.received))
	t.record("deliveries_per_read", float64(spent.received)/float64(max(1, spent.reads)))
	if t.redis != nil {
		t.record("redis_us_per_delivery", micros(spent.redis, spent.received))
	}
}

// measureBusyChannel measures many publishers on one channel, where a server can coalesce messages
// into one write.
func measureBusyChannel(ctx context.Context, t *trial) error {
	return t.measureClosedLoop(ctx, func(spent counters, _ int64) { t.recordDeliveries(spent) })
}

// measureSingle measures channels with one subscriber each.
func measureSingle(ctx context.Context, t *trial) error {
	return t.measureClosedLoop(ctx, t.recordPushes)
}

// measureClosedLoop measures a closed loop, and records its cost with record. It first pushes once
// to each channel, so that the server's first work for a channel is not counted.
func (t *trial) measureClosedLoop(ctx context.Context, record func(spent counters, pushes int64)) error {
	if err := t.connect(ctx); err != nil {
		return err
	}
	return t.withPublishers(func(p *publishers) error {
		if err := p.pushToEach(ctx, true); err != nil {
			return err
		}
		spent, pushes, err := t.spentPushing(func() (int64, error) { return p.closedLoop(ctx, t.size.time) })
		if err == nil {
			record(spent, pushes)
		}
		return err
	})
}

// recordPushes records the cost of a push, and the pushes per second.
func (t *trial) recordPushes(spent counters, pushes int64) {
	t.record("pushes_per_s", spent.perSecond(pushes))
	t.recordPushCost(spent, pushes)
}

// recordPushCost records the cost of a push.
func (t *trial) recordPushCost(spent counters, pushes int64) {
	t.record("cpu_us_per_push", micros(spent.total(), pushes))
	t.record("generator_us_per_push", micros(spent.own, pushes))
	if t.redis != nil {
		t.record("redis_us_per_push", micros(spent.redis, pushes))
	}
}
