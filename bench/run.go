package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"switchboard/bench/progress"
	"switchboard/bench/swarm"
	"switchboard/bench/usage"
)

// run is one measurement.
type run struct {
	opts     options
	progress *progress.Line
	id       string // unique; part of client ids and of the key prefix

	target     *target
	redis      *redisServer // nil without Redis
	swarm      *swarm.Swarm
	publishers *publishers

	pushes   int64 // pushes so far
	expected int64 // deliveries that these pushes must cause
	result   result
}

// measure runs the whole measurement. With an error it returns the results so far.
func measure(ctx context.Context, o options, p *progress.Line) (_ result, err error) {
	r := &run{opts: o, progress: p, id: strings.ToLower(rand.Text()[:8]), result: newResult(o)}
	if o.floor {
		if r.result.Floor, err = measureFloor(ctx, o, p); err != nil {
			return r.result, fmt.Errorf("floor: %w", err)
		}
	}
	prefix := "bench-" + r.id + ":"
	if o.redis != "" {
		if r.redis, err = connectRedis(ctx, o.redis); err != nil {
			return r.result, err
		}
		defer func() { err = errors.Join(err, r.redis.close(prefix)) }()
	}
	p.Stage("starting the broker")
	if r.target, err = openTarget(ctx, o, prefix); err != nil {
		return r.result, err
	}
	defer func() {
		p.Stage("stopping the broker")
		err = errors.Join(err, r.target.checkRunning(), r.target.stop())
	}()
	err = r.measureSubscribers(ctx)
	return r.result, err
}

// measureSubscribers measures connecting, idle connections and deliveries.
func (r *run) measureSubscribers(ctx context.Context) (err error) {
	addr := r.target.swarmAddress(r.opts.transport)
	r.swarm, err = swarm.New(swarm.Options{
		Addr: addr, Dialect: &swarm.Switchboard{Addr: addr, Path: webSocketPaths[r.opts.transport]},
		Connections: r.opts.connections, Channels: r.opts.channelNames(), Payload: payload(r.opts.size),
		Client: "bench-" + r.id + "-", Stall: r.opts.stall,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.swarm.Close()) }()
	if err := r.measureConnect(ctx); err != nil {
		return err
	}
	if r.publishers, err = newPublishers(ctx, r.opts, r.target.http, r.swarm.Wake); err != nil {
		return err
	}
	defer r.publishers.close() // before the swarm closes, because publishers wake it
	err = r.runPhases(ctx)
	r.result.Wrong, r.result.Faults = r.swarm.Verify(r.publishers.pushed())
	r.result.Valid = err == nil && r.result.Wrong == 0
	return err
}

// measureConnect measures the CPU time of connecting and the memory of an idle connection.
func (r *run) measureConnect(ctx context.Context) error {
	resident := func() (int64, error) { return usage.Resident(r.target.pid) }
	n := float64(r.opts.connections)

	r.progress.Stage("waiting until the broker's memory is steady")
	empty, settledBefore, err := usage.Settle(ctx, resident, r.swarm.Idle)
	if err != nil {
		return err
	}
	goBefore, hasGoMemory, err := readGoMemory(ctx, r.target.http, r.target.pprof)
	if err != nil {
		return err
	}
	before, err := r.sample(ctx)
	if err != nil {
		return err
	}
	err = r.swarm.Open(ctx, func() { r.progress.Show("%d of %d connections", r.swarm.Ready(), r.opts.connections) })
	if err != nil {
		return err
	}
	after, err := r.sample(ctx)
	if err != nil {
		return err
	}
	r.result.Setup = newSetupResult(before, after, n)

	r.progress.Stage("waiting until the broker's memory is steady again")
	full, settled, err := usage.Settle(ctx, resident, r.swarm.Idle)
	if err != nil {
		return err
	}
	r.result.Memory = &memoryResult{
		Empty: empty, Full: full, Settled: settled && settledBefore, PerConnection: float64(full-empty) / n,
	}
	if goAfter, ok, err := readGoMemory(ctx, r.target.http, r.target.pprof); err != nil {
		return err
	} else if ok && hasGoMemory {
		r.result.Memory.Go = &goResult{
			HeapPerConnection: (goAfter.heap - goBefore.heap) / n, StacksPerConnection: (goAfter.stacks - goBefore.stacks) / n,
		}
	}
	return nil
}

// runPhases runs all phases. Then it waits until all outstanding messages have arrived.
func (r *run) runPhases(ctx context.Context) error {
	for _, ph := range phases {
		r.progress.Stage("%s", ph.name)
		res, err := r.runPhase(ctx, ph.name, ph.roundSize(r.opts))
		if err != nil {
			return err
		}
		r.result.Phases = append(r.result.Phases, res)
	}
	r.progress.Stage("checking for unexpected deliveries")
	return r.swarm.PingAll(ctx)
}
