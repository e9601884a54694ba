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

// opening is how many processes of subscribers connect at once.
const opening = 2

// run is one measurement.
type run struct {
	opts     options
	progress *progress.Line
	redis    *redistest.Server
	brokers  system.Running
	crowds   []*crowd
}

// measure does everything, and prints what it found.
func measure(ctx context.Context, o options, p *progress.Line, out io.Writer) (err error) {
	if err := room(o); err != nil {
		return err
	}
	ctx, done := context.WithTimeout(ctx, o.time)
	defer done()
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { watch(ctx, cancel, unused) })
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
	defer r.end()
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
	p.Stage("checking what everybody received")
	for _, c := range r.crowds {
		_ = c.in.Close() // all look at once; finish tells what is wrong
	}
	for _, c := range r.crowds {
		if err := c.finish(); err != nil {
			return err
		}
	}
	p.Clear()
	table(out, o, len(r.crowds), [3]sample{empty, full, pushed}, times)
	return nil
}

// start builds and runs the brokers. All of them come before the first client: when one joins, all others read the queues
// of all their clients once, which with thousands of clients each is more work than anything else here.
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
	b := &system.Switchboard{Program: program, Env: environment}
	r.brokers, err = b.Start(ctx, system.Setup{
		Dir: dir, History: true, Redis: r.redis.Addr, Clients: r.opts.perBroker, Transport: r.opts.transport, Instances: n,
	})
	return err
}

// environment is what brokers are told here and not elsewhere. One processor each: 55 of them look for work on two
// cores (each tells each other four times a second that it lives), and with one they take a third less. The time to say
// connect is for subscribers that wait for a processor.
var environment = []string{"SWITCHBOARD_TIMES_PING=1h", "SWITCHBOARD_TIMES_CONNECT=2m", "GOMAXPROCS=1"}

// open connects the subscribers, some processes at a time.
func (r *run) open(ctx context.Context) error {
	addrs := r.brokers.(system.Spread).Addrs()
	left := r.opts.connections
	for i, addr := range addrs {
		n := min(left, r.opts.perBroker)
		left -= n
		r.crowds = append(r.crowds, newCrowd(addr, r.opts.transport, n, fmt.Sprintf("m%d-", i)))
	}
	group, until := errgroup.WithContext(ctx)
	group.SetLimit(opening)
	for i, c := range r.crowds {
		group.Go(func() error {
			if until.Err() != nil {
				return until.Err()
			}
			r.progress.Stage("connecting crowd %d of %d", i+1, len(r.crowds))
			return c.open(ctx) // not until: the others go on living when all are open
		})
	}
	return group.Wait()
}

// push lets one message after the other reach everybody, and says how long each took.
func (r *run) push(ctx context.Context) (times []time.Duration, err error) {
	publisher, err := r.brokers.Publisher()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, publisher.Close()) }()
	for i := range r.opts.pushes {
		r.progress.Stage("push %d of %d", i+1, r.opts.pushes)
		for _, c := range r.crowds {
			if err := c.await(); err != nil {
				return times, err
			}
		}
		begun := time.Now()
		if err := publisher.Publish(ctx, channel, swarm.AppendPayload(nil, int64(i+1), 0)); err != nil {
			return times, err
		}
		for _, c := range r.crowds {
			if err := c.hear("received"); err != nil {
				return times, err
			}
		}
		times = append(times, time.Since(begun))
	}
	return times, nil
}

// end kills what is left: nobody is interested in the leave-taking of a million.
func (r *run) end() {
	r.progress.Stage("ending")
	if r.brokers != nil {
		for _, pid := range r.brokers.PIDs() {
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill()
			}
		}
		_ = r.brokers.Stop() // they are gone
	}
	for _, c := range r.crowds {
		c.kill()
	}
	if r.redis != nil {
		r.redis.Kill()
	}
	r.progress.Clear()
}
