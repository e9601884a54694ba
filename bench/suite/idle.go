package main

import (
	"context"
	"errors"
	"time"
)

// measureInstances measures a push to one channel whose subscribers are spread over several
// brokers, one push at a time. A closed loop would mainly show how many messages share a write,
// which falls when more processes share the cores. The CPU time of the same brokers without pushes
// is subtracted, because the rate of the pushes would determine its share of each push.
func measureInstances(ctx context.Context, t *trial) error {
	if err := t.connect(ctx); err != nil {
		return err
	}
	return t.withPublishers(func(p *publishers) error {
		if err := p.pushToEach(ctx, true); err != nil {
			return err
		}
		if err := t.awaitSettled(ctx); err != nil {
			return err
		}
		rest, _, err := t.measureIdle(ctx, idleTime)
		if err != nil {
			return err
		}
		before, err := t.readCounters()
		if err != nil {
			return err
		}
		pushes, err := p.oneAtATime(ctx)
		if err != nil {
			return err
		}
		share := time.Since(before.at).Seconds() / idleTime.Seconds()
		before.server += time.Duration(float64(rest.server) * share)
		before.redis += time.Duration(float64(rest.redis) * share)
		t.record("rest_ms_per_s", milliseconds(rest.server+rest.redis)/idleTime.Seconds())
		return t.recordPushes(before, pushes)
	})
}

// idleTime is two beats.
const idleTime = 4 * time.Second

// measureBeat measures the CPU time of an idle second, in which no message is sent and the work
// that connecting caused is over. Before the first heartbeats of the connections and before the
// first bindings are renewed, a broker only runs its own beat. (Heartbeats and renewals are
// proportional to the number of connections: 15,000 answer 600 pings a second, which idle-cpu
// measures, and renew 8 bindings.)
func measureBeat(ctx context.Context, t *trial) error {
	if err := t.connect(ctx); err != nil {
		return err
	}
	if err := t.awaitSettled(ctx); err != nil {
		return err
	}
	spent, _, err := t.measureIdle(ctx, t.size.time)
	if err != nil {
		return err
	}
	t.record("cpu_ms_per_s", milliseconds(spent.server)/t.size.time.Seconds())
	if t.redis != nil {
		t.record("redis_ms_per_s", milliseconds(spent.redis)/t.size.time.Seconds())
	}
	return nil
}

// measureIdleCPU measures the CPU time of connections whose only traffic is heartbeats.
func measureIdleCPU(ctx context.Context, t *trial) error {
	if err := t.connect(ctx); err != nil {
		return err
	}
	if err := t.awaitQuiet(ctx); err != nil {
		return err
	}
	spent, commands, err := t.measureIdle(ctx, t.size.time)
	if err != nil {
		return err
	}
	perMinute := time.Minute.Seconds() / t.size.time.Seconds()
	t.record("cpu_ms_per_min", milliseconds(spent.server)*perMinute)
	if t.redis != nil {
		t.record("redis_commands_per_conn_min", commands*perMinute/float64(t.size.connections))
	}
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// measureIdle waits for d and returns what it cost.
func (t *trial) measureIdle(ctx context.Context, d time.Duration) (spent counters, commands float64, err error) {
	count := func() (n float64, err error) {
		if t.redis != nil {
			n, err = t.redis.info(ctx, "stats", "total_commands_processed")
		}
		return n, err
	}
	t.show("idle for %v", d)
	first, err := count()
	if err != nil {
		return spent, 0, err
	}
	before, err := t.readCounters()
	if err != nil {
		return spent, 0, err
	}
	if err := t.swarm.Idle(ctx, d); err != nil {
		return spent, 0, err
	}
	now, err := t.readCounters()
	if err != nil {
		return spent, 0, err
	}
	last, err := count()
	return now.since(before), last - first, err
}

// awaitSettled waits until all work that connecting and the first messages caused is over, also
// delayed work such as garbage collection and returning memory to the system.
func (t *trial) awaitSettled(ctx context.Context) error {
	if err := t.awaitQuiet(ctx); err != nil {
		return err
	}
	_, _, err := t.memory(ctx)
	return err
}

const (
	quietInterval  = 200 * time.Millisecond
	quietCPU       = quietInterval / 20
	maxQuietChecks = 100
)

// awaitQuiet waits until server and Redis are idle.
func (t *trial) awaitQuiet(ctx context.Context) error {
	t.show("waiting until the server is idle")
	before, err := t.readCounters()
	if err != nil {
		return err
	}
	for range maxQuietChecks {
		if err := t.swarm.Idle(ctx, quietInterval); err != nil {
			return err
		}
		now, err := t.readCounters()
		if err != nil {
			return err
		}
		if spent := now.since(before); spent.server+spent.redis < quietCPU {
			return nil
		}
		before = now
	}
	return errors.New("the server does not become idle")
}
