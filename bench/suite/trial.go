package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"switchboard/bench/progress"
	"switchboard/bench/rooms"
	"switchboard/bench/swarm"
	"switchboard/bench/system"
	"switchboard/bench/usage"
	"switchboard/internal/await"
)

// trial is one measurement: a server started for it, and its subscribers.
type trial struct {
	scenario  *scenario
	contender contender
	size      size
	x         int     // point on the curve
	rate      float64 // of an open loop, in pushes per second
	progress  *progress.Line
	stall     time.Duration
	label     string    // for the progress line
	started   time.Time // start of the suite

	redis   *redisServer // nil without Redis
	running system.Running
	swarm   *swarm.Swarm   // nil in scenarios of rooms
	players *rooms.Players // nil in others
	pushLog pushLog
	cursors *cursorLog // nil in other scenarios
	value   []byte     // of a cursor

	histogram *hdrhistogram.Histogram // of latencies
	results   []result
}

// result is one measured value of one metric.
type result struct {
	scenario, metric string
	x, value         float64
}

// errUnavailable is wrapped by the error of a system that cannot run on this machine.
var errUnavailable = errors.New("not measured")

const (
	// trialTime limits one measurement.
	trialTime = 3 * time.Minute
	// strayWait is how long to wait at the end for unexpected deliveries.
	strayWait = 200 * time.Millisecond
)

// run runs the measurement. If it returns an error, no result counts.
func (t *trial) run(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	dir, err := os.MkdirTemp("", "suite-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if t.contender.redis {
		if t.redis, err = startRedis(dir); err != nil {
			return err
		}
		defer t.redis.stop()
	}
	setup := system.Setup{
		Dir: dir, History: true, Clients: t.size.connections, Transport: t.contender.transport, Instances: t.instances(),
		Cursors: t.scenario.id == "cursors", Heap: t.scenario.id == "state-memory" || t.scenario.id == "load",
	}
	if t.redis != nil {
		setup.Redis = t.redis.server.Addr
	}
	t.show("starting")
	if t.running, err = t.contender.system.Start(ctx, setup); err != nil {
		return fmt.Errorf("%w: %w", errUnavailable, err)
	}
	defer func() { err = errors.Join(err, t.running.Stop()) }()
	if t.scenario.rooms {
		return t.measureRooms(ctx)
	}
	return t.measureSubscribers(ctx)
}

// measureRooms measures, and ends the players of rooms.
func (t *trial) measureRooms(ctx context.Context) error {
	t.players = rooms.New(t.running)
	defer t.players.Close()
	return t.scenario.measure(ctx, t)
}

// idle waits for d. The swarm receives meanwhile.
func (t *trial) idle(ctx context.Context, d time.Duration) error {
	if t.swarm == nil {
		return await.Pause(ctx, d)
	}
	return t.swarm.Idle(ctx, d)
}

// instances returns the number of brokers.
func (t *trial) instances() int {
	if t.scenario.id == "instances" {
		return t.x
	}
	return 1
}

// measureSubscribers creates the swarm, measures, and checks the deliveries.
func (t *trial) measureSubscribers(ctx context.Context) (err error) {
	opts := swarm.Options{
		Addr: t.running.Addr(), Dialect: t.running.Dialect(), Connections: t.size.connections,
		Client: "bench-", PayloadSize: t.size.bytes, Publishers: t.publishersPerChannel(), Latency: t.recordLatency, Stall: t.stall,
	}
	if spread, ok := t.running.(system.MultiInstance); ok {
		opts.Addrs = spread.Addrs()
	}
	if t.scenario.id == "cursors" {
		complete := t.contender.state || t.contender.name == "centrifuge"
		t.cursors = newCursorLog(t.size.connections, complete, complete)
		opts.Receive = t.cursors.receive
	}
	for i := range t.size.channels {
		opts.Channels = append(opts.Channels, channelName(i))
	}
	if t.swarm, err = swarm.New(opts); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.swarm.Close()) }()
	t.pushLog = newPushLog(t.size.channels, t.size.publishers)
	if err := t.scenario.measure(ctx, t); err != nil {
		return err
	}
	if err := t.idle(ctx, strayWait); err != nil {
		return err
	}
	if t.storeOnly() {
		return nil
	}
	if wrong, faults := t.swarm.Verify(t.pushLog.numbers); wrong > 0 {
		return fmt.Errorf("%d deliveries were lost, repeated, changed or out of order: %s", wrong, faults[0])
	}
	return nil
}

// publishersPerChannel returns the number of publishers that share a channel. Only a single channel
// is shared. Each of several channels has one publisher, so its messages have a total order.
func (t *trial) publishersPerChannel() int64 {
	if t.size.channels == 1 {
		return int64(t.size.publishers)
	}
	return 1
}

func (t *trial) show(format string, args ...any) {
	t.progress.Show("%v, %s: %s", time.Since(t.started).Round(time.Second), t.label, fmt.Sprintf(format, args...))
}

// record records a result of this scenario.
func (t *trial) record(metric string, value float64) {
	t.results = append(t.results, result{t.scenario.id, metric, float64(t.x), value})
}

// connect connects and subscribes all clients.
func (t *trial) connect(ctx context.Context) error {
	return t.swarm.Open(ctx, func() { t.show("%d of %d connections", t.swarm.Ready(), t.size.connections) })
}

// resident returns the memory of the server's processes.
func (t *trial) resident() (int64, error) { return usage.Resident(t.running.PIDs()...) }

// counters holds all counters at one moment, or their growth.
type counters struct {
	at            time.Time
	elapsed       time.Duration // of a difference
	server, redis time.Duration // CPU
	own           time.Duration // of this process
	received      int64
	reads         int64 // calls of read(2) that returned messages
}

func (t *trial) readCounters() (s counters, err error) {
	if s.server, err = usage.CPU(t.running.PIDs()...); err != nil {
		return s, err
	}
	if t.redis != nil {
		if s.redis, err = usage.CPU(t.redis.server.PID()); err != nil {
			return s, err
		}
	}
	if s.own, err = usage.OwnCPU(); err != nil {
		return s, err
	}
	if t.swarm != nil {
		s.received, s.reads = t.swarm.Received()
	}
	s.at = time.Now()
	return s, nil
}

// spent calls do and returns what was used meanwhile.
func (t *trial) spent(do func() error) (counters, error) {
	before, err := t.readCounters()
	if err == nil {
		err = do()
	}
	if err != nil {
		return counters{}, err
	}
	now, err := t.readCounters()
	return now.since(before), err
}

// spentPushing is spent for a function that returns the number of its pushes.
func (t *trial) spentPushing(do func() (int64, error)) (spent counters, pushes int64, err error) {
	spent, err = t.spent(func() (err error) {
		pushes, err = do()
		return err
	})
	return spent, pushes, err
}

// since returns the difference between two readings.
func (s counters) since(before counters) counters {
	s.server, s.redis, s.received = s.server-before.server, s.redis-before.redis, s.received-before.received
	s.own, s.reads, s.elapsed = s.own-before.own, s.reads-before.reads, s.at.Sub(before.at)
	return s
}

// total is the CPU of the server and its Redis.
func (s counters) total() time.Duration { return s.server + s.redis }

// perSecond returns the rate of n in the time between two readings.
func (s counters) perSecond(n int64) float64 { return float64(n) / s.elapsed.Seconds() }

// micros returns d/n in microseconds.
func micros(d time.Duration, n int64) float64 {
	return float64(d) / float64(time.Microsecond) / float64(max(1, n))
}
