package main

import (
	"context"
	"errors"
	"time"
)

// measureInstances measures a push to one channel whose subscribers are spread over several
// brokers. It pushes one message at a time: in a closed loop the cost depends mainly on how many
// messages share a write, and that number falls when more processes share the cores. It subtracts
// the CPU time that the brokers use without pushes. Otherwise the cost of a push would depend on
// the rate.
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
		idle, _, err := t.measureIdle(ctx, idleTime)
		if err != nil {
			return err
		}
		spent, pushes, err := t.spentPushing(func() (int64, error) { return p.oneAtATime(ctx) })
		if err != nil {
			return err
		}
		ratio := spent.elapsed.Seconds() / idleTime.Seconds()
		spent.server -= time.Duration(float64(idle.server) * ratio)
		spent.redis -= time.Duration(float64(idle.redis) * ratio)
		t.record("rest_ms_per_s", milliseconds(idle.total())/idleTime.Seconds())
		t.recordPushes(spent, pushes)
		return nil
	})
}

// idleTime is two beats: a broker renews its lease every two seconds.
const idleTime = 4 * time.Second

// measureBeat measures the CPU time per second of a broker that only runs its beat. It measures
// after the work that connecting caused, and before the first heartbeats of the connections and the
// first renewals of bindings. These are proportional to the number of connections: 15,000
// connections answer 600 pings and renew 8 bindings a second. The scenario idle-cpu measures the
// pings.
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

// measureIdle waits for d. It returns the CPU time used and the number of Redis commands.
func (t *trial) measureIdle(ctx context.Context, d time.Duration) (spent counters, commands float64, err error) {
	t.show("idle for %v", d)
	commands, err = t.commands(ctx, func() (err error) {
		spent, err = t.spent(func() error { return t.idle(ctx, d) })
		return err
	})
	return spent, commands, err
}

// commands returns the number of commands of Redis while do runs, 0 without Redis.
func (t *trial) commands(ctx context.Context, do func() error) (n float64, err error) {
	count := func() (n float64, err error) {
		if t.redis != nil {
			n, err = t.redis.info(ctx, "Stats", "total_commands_processed")
		}
		return n, err
	}
	before, err := count()
	if err == nil {
		err = do()
	}
	if err != nil {
		return 0, err
	}
	after, err := count()
	return after - before, err
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
	for range maxQuietChecks {
		spent, err := t.spent(func() error { return t.idle(ctx, quietInterval) })
		if err != nil {
			return err
		}
		if spent.total() < quietCPU {
			return nil
		}
	}
	return errors.New("the server does not become idle")
}
