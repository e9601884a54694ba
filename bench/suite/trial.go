package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"switchboard/bench/progress"
	"switchboard/bench/swarm"
	"switchboard/bench/system"
	"switchboard/bench/usage"
)

// trial is one measurement: a server started for it, and its subscribers.
type trial struct {
	scenario  *scenario
	contender contender
	size      size
	x         int     // on the curve
	rate      float64 // of an open loop, pushes a second
	progress  *progress.Line
	stall     time.Duration
	label     string    // of the progress line
	begun     time.Time // of the suite

	redis   *store // nil without
	running system.Running
	swarm   *swarm.Swarm
	book    book

	histogram *hdrhistogram.Histogram // of latencies
	figures   []figure
}

// figure is one number that was found.
type figure struct {
	scenario, metric string
	x, value         float64
}

// errAbsent is wrapped by the error of a system that cannot be had on this machine.
var errAbsent = errors.New("not measured")

const (
	// trialTime bounds one measurement.
	trialTime = 3 * time.Minute
	// strayTime is how long a delivery too many may take to show itself in the end.
	strayTime = 200 * time.Millisecond
)

// run measures. No figure of a run that returns an error counts.
func (t *trial) run(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	dir, err := os.MkdirTemp("", "suite-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if t.contender.redis {
		if t.redis, err = startStore(dir); err != nil {
			return err
		}
		defer t.redis.stop()
	}
	setup := system.Setup{
		Dir: dir, History: true, Clients: t.size.connections, Transport: t.contender.transport, Instances: t.instances(),
	}
	if t.redis != nil {
		setup.Redis = t.redis.server.Addr
	}
	t.show("starting")
	if t.running, err = t.contender.system.Start(ctx, setup); err != nil {
		return fmt.Errorf("%w: %w", errAbsent, err)
	}
	defer func() { err = errors.Join(err, t.running.Stop()) }()
	return t.subscribers(ctx)
}

// instances is the x of that scenario.
func (t *trial) instances() int {
	if t.scenario.id == "instances" {
		return t.x
	}
	return 1
}

// subscribers makes the swarm, measures, and checks what arrived.
func (t *trial) subscribers(ctx context.Context) (err error) {
	opts := swarm.Options{
		Addr: t.running.Addr(), Dialect: t.running.Dialect(), Connections: t.size.connections,
		Client: "bench-", Writers: t.writers(), Latency: t.latency, Stall: t.stall,
	}
	if spread, ok := t.running.(system.Spread); ok {
		opts.Addrs = spread.Addrs()
	}
	for i := range t.size.channels {
		opts.Channels = append(opts.Channels, channelName(i))
	}
	if t.swarm, err = swarm.New(opts); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.swarm.Close()) }()
	t.book = newBook(t.size.channels, t.size.publishers)
	if err := t.scenario.measure(ctx, t); err != nil {
		return err
	}
	if err := t.swarm.Idle(ctx, strayTime); err != nil {
		return err
	}
	if wrong, faults := t.swarm.Verify(t.book.pushed); wrong > 0 {
		return fmt.Errorf("%d deliveries were lost, repeated, changed or out of order: %s", wrong, faults[0])
	}
	return nil
}

// writers is how many publishers share a channel: else each channel has one, and so one order.
func (t *trial) writers() int64 {
	if t.size.channels == 1 {
		return int64(t.size.publishers)
	}
	return 1
}

func (t *trial) show(format string, args ...any) {
	t.progress.Show("%v, %s: %s", time.Since(t.begun).Round(time.Second), t.label, fmt.Sprintf(format, args...))
}

// found notes a figure of this scenario.
func (t *trial) found(metric string, value float64) {
	t.figures = append(t.figures, figure{t.scenario.id, metric, float64(t.x), value})
}

// open connects and subscribes everybody.
func (t *trial) open(ctx context.Context) error {
	return t.swarm.Open(ctx, func() { t.show("%d of %d connections", t.swarm.Ready(), t.size.connections) })
}

// resident is the memory of the server's processes.
func (t *trial) resident() (sum int64, err error) {
	for _, pid := range t.running.PIDs() {
		n, err := usage.Resident(pid)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// sample is the counters at one moment.
type sample struct {
	at            time.Time
	server, redis time.Duration // CPU
	own           time.Duration // of this process, which shares the cores
	received      int64
}

func (t *trial) sample() (s sample, err error) {
	for _, pid := range t.running.PIDs() {
		cpu, err := usage.CPU(pid)
		if err != nil {
			return s, err
		}
		s.server += cpu
	}
	if t.redis != nil {
		if s.redis, err = usage.CPU(t.redis.server.PID()); err != nil {
			return s, err
		}
	}
	if s.own, err = usage.OwnCPU(); err != nil {
		return s, err
	}
	s.received, _ = t.swarm.Received()
	s.at = time.Now()
	return s, nil
}

// since is what happened between two samples.
func (s sample) since(before sample) sample {
	s.server, s.redis, s.received = s.server-before.server, s.redis-before.redis, s.received-before.received
	s.own -= before.own
	return s
}

// micros is d per n things, in microseconds.
func micros(d time.Duration, n int64) float64 {
	return float64(d) / float64(time.Microsecond) / float64(max(1, n))
}
