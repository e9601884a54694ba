package main

import (
	"context"
	"errors"
	"time"
)

// measureInstances is a push to one channel whose subscribers are spread over several brokers, one at a time: in a
// loop it would show how many messages are gathered for one write, which falls when more processes share the cores.
// What the same brokers cost while nobody pushes, which the pace of the pushes would spread over them, is taken off.
func measureInstances(ctx context.Context, t *trial) error {
	if err := t.open(ctx); err != nil {
		return err
	}
	return t.with(func(p *publishers) error {
		if err := p.each(ctx, true); err != nil {
			return err
		}
		if err := t.settle(ctx); err != nil {
			return err
		}
		rest, _, err := t.rest(ctx, restTime)
		if err != nil {
			return err
		}
		before, err := t.sample()
		if err != nil {
			return err
		}
		pushes, err := p.oneAtATime(ctx)
		if err != nil {
			return err
		}
		share := time.Since(before.at).Seconds() / restTime.Seconds()
		before.server += time.Duration(float64(rest.server) * share)
		before.redis += time.Duration(float64(rest.redis) * share)
		t.found("rest_ms_per_s", milliseconds(rest.server+rest.redis)/restTime.Seconds())
		return t.pushes(before, pushes)
	})
}

// restTime is two beats.
const restTime = 4 * time.Second

// measureBeat is what a broker does in a second in which nobody says anything, and nothing is left to do that
// connecting has caused: within the first interval of the heartbeats, and before the first bindings are renewed, that is
// its own beat and nothing else. (Those two are by nature as many as the connections: 15,000 answer 600 pings in a
// second, which idle-cpu measures, and have 8 bindings renewed.)
func measureBeat(ctx context.Context, t *trial) error {
	if err := t.open(ctx); err != nil {
		return err
	}
	if err := t.settle(ctx); err != nil {
		return err
	}
	spent, _, err := t.rest(ctx, t.size.time)
	if err != nil {
		return err
	}
	t.found("cpu_ms_per_s", milliseconds(spent.server)/t.size.time.Seconds())
	if t.redis != nil {
		t.found("redis_ms_per_s", milliseconds(spent.redis)/t.size.time.Seconds())
	}
	return nil
}

// measureIdleCPU is what connections cost that say nothing but their signs of life.
func measureIdleCPU(ctx context.Context, t *trial) error {
	if err := t.open(ctx); err != nil {
		return err
	}
	if err := t.quiet(ctx); err != nil {
		return err
	}
	spent, commands, err := t.rest(ctx, t.size.time)
	if err != nil {
		return err
	}
	perMinute := time.Minute.Seconds() / t.size.time.Seconds()
	t.found("cpu_ms_per_min", milliseconds(spent.server)*perMinute)
	if t.redis != nil {
		t.found("redis_commands_per_conn_min", commands*perMinute/float64(t.size.connections))
	}
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// rest lets time pass, and says what it cost.
func (t *trial) rest(ctx context.Context, d time.Duration) (spent sample, commands float64, err error) {
	count := func() (n float64, err error) {
		if t.redis != nil {
			n, err = t.redis.info(ctx, "stats", "total_commands_processed")
		}
		return n, err
	}
	t.show("resting for %v", d)
	first, err := count()
	if err != nil {
		return spent, 0, err
	}
	before, err := t.sample()
	if err != nil {
		return spent, 0, err
	}
	if err := t.swarm.Idle(ctx, d); err != nil {
		return spent, 0, err
	}
	now, err := t.sample()
	if err != nil {
		return spent, 0, err
	}
	last, err := count()
	return now.since(before), last - first, err
}

// settle waits until whatever connecting and first messages have caused is over: also what the server does
// later on account of them, such as to collect their garbage and give the memory back, which shows in the memory.
func (t *trial) settle(ctx context.Context) error {
	if err := t.quiet(ctx); err != nil {
		return err
	}
	_, _, err := t.memory(ctx)
	return err
}

const (
	quietTime  = 200 * time.Millisecond
	quietCPU   = quietTime / 20
	quietTimes = 100 // looks
)

// quiet waits until server and store have nothing left to do.
func (t *trial) quiet(ctx context.Context) error {
	t.show("waiting until the server is quiet")
	before, err := t.sample()
	if err != nil {
		return err
	}
	for range quietTimes {
		if err := t.swarm.Idle(ctx, quietTime); err != nil {
			return err
		}
		now, err := t.sample()
		if err != nil {
			return err
		}
		if spent := now.since(before); spent.server+spent.redis < quietCPU {
			return nil
		}
		before = now
	}
	return errors.New("the server does not become quiet")
}
