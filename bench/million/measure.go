package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"switchboard/bench/progress"
	"switchboard/bench/swarm"
	"switchboard/bench/system"
	"switchboard/internal/redistest"
)

// maxOpening is the number of processes that connect their subscribers at the same time.
const maxOpening = 2

// run is one measurement.
type run struct {
	opts      options
	progress  *progress.Line
	redis     *redistest.Server
	brokers   system.Running
	processes []*subscriberProcess
}

// measure runs the whole measurement and prints the result.
func measure(ctx context.Context, o options, p *progress.Line, out io.Writer) (err error) {
	if err := checkMemory(o); err != nil {
		return err
	}
	ctx, done := context.WithTimeout(ctx, o.time)
	defer done()
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { watchMemory(ctx, cancel, freeMemory) })
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		cancel(nil)
		watching.Wait()
	}()
	dir, err := os.MkdirTemp("", "million-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r := &run{opts: o, progress: p}
	defer r.killAll()
	if err := r.start(ctx, dir); err != nil {
		return err
	}
	empty, err := r.sample()
	if err != nil {
		return err
	}
	if err := r.open(ctx); err != nil {
		return err
	}
	full, err := r.sample()
	if err != nil {
		return err
	}
	times, err := r.push(ctx)
	if err != nil {
		return err
	}
	pushed, err := r.sample()
	if err != nil {
		return err
	}
	p.Stage("checking what all connections received")
	for _, sp := range r.processes {
		_ = sp.in.Close() // all processes check at the same time; finish returns the errors
	}
	for _, sp := range r.processes {
		if err := sp.finish(); err != nil {
			return err
		}
	}
	p.Clear()
	printTables(out, o, len(r.processes), [3]sample{empty, full, pushed}, times)
	return nil
}

// start builds and starts the brokers. All must start before the first client connects: when a
// broker joins, all others read the queues of all their clients once. With thousands of clients per
// broker this would be more work than any other part of the run.
func (r *run) start(ctx context.Context, dir string) (err error) {
	r.progress.Stage("building the broker")
	program, err := system.BuildBroker(ctx, dir)
	if err != nil {
		return err
	}
	if r.redis, err = redistest.Launch(dir, "--maxmemory-policy", "noeviction"); err != nil {
		return err
	}
	n := r.opts.brokers()
	r.progress.Stage("starting %d brokers", n)
	b := &system.Switchboard{Program: program, Env: brokerEnv}
	r.brokers, err = b.Start(ctx, system.Setup{
		Dir: dir, History: true, Redis: r.redis.Addr, Clients: r.opts.perBroker, Transport: r.opts.transport, Instances: n,
	})
	return err
}

// brokerEnv holds the settings that differ from the defaults. GOMAXPROCS is 1, which saves a
// third of the brokers' CPU: a million connections need 55 brokers on two cores, and all brokers
// send each other heartbeats four times a second. The connect timeout allows for subscribers that
// wait for a processor.
var brokerEnv = []string{"SWITCHBOARD_TIMES_PING=1h", "SWITCHBOARD_TIMES_CONNECT=2m", "GOMAXPROCS=1"}

// open connects the subscribers, maxOpening processes at a time.
func (r *run) open(ctx context.Context) error {
	addrs := r.brokers.(system.MultiInstance).Addrs()
	left := r.opts.connections
	for i, addr := range addrs {
		n := min(left, r.opts.perBroker)
		left -= n
		r.processes = append(r.processes, newSubscriberProcess(addr, r.opts.transport, n, fmt.Sprintf("m%d-", i)))
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(maxOpening)
	for i, sp := range r.processes {
		group.Go(func() error {
			if err := groupCtx.Err(); err != nil { // another process failed
				return err
			}
			r.progress.Stage("connecting process %d of %d", i+1, len(r.processes))
			return sp.open(ctx) // not groupCtx, which ends with this group: the process must outlive it
		})
	}
	return group.Wait()
}

// push pushes the messages one after the other and returns how long each took to reach all
// subscribers.
func (r *run) push(ctx context.Context) (times []time.Duration, err error) {
	publisher, err := r.brokers.Publisher()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, publisher.Close()) }()
	for i := range r.opts.pushes {
		r.progress.Stage("push %d of %d", i+1, r.opts.pushes)
		for _, sp := range r.processes {
			if err := sp.expectMessage(); err != nil {
				return times, err
			}
		}
		begun := time.Now()
		if err := publisher.Publish(ctx, channel, swarm.AppendPayload(nil, int64(i+1), 0)); err != nil {
			return times, err
		}
		for _, sp := range r.processes {
			if err := sp.expectLine("received"); err != nil {
				return times, err
			}
		}
		times = append(times, time.Since(begun))
	}
	return times, nil
}

// killAll kills all processes. An orderly end of a million connections would take long and is not
// measured.
func (r *run) killAll() {
	r.progress.Stage("stopping")
	if r.brokers != nil {
		for _, pid := range r.brokers.PIDs() {
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill()
			}
		}
		_ = r.brokers.Stop() // they have ended already
	}
	for _, sp := range r.processes {
		sp.kill()
	}
	if r.redis != nil {
		r.redis.Kill()
	}
	r.progress.Clear()
}
