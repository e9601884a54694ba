package redispipe

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Options configures a Pipe.
type Options struct {
	// Timeout bounds one round trip, redirects of a Cluster included. Zero means 3 s.
	Timeout time.Duration
	// MaxBatch is the most commands in one round trip. Zero means 512.
	MaxBatch int
	// MaxInFlight is the most round trips in flight. A low limit makes calls wait for a round trip to
	// end. A high limit makes batches smaller. Each master of a Cluster has a limit of its own, and
	// durable calls have another one of the same size. With n masters it is MaxInFlight/√n, at least
	// 2: each round trip in flight has a connection, and a Redis has those of all brokers. Zero
	// means 8.
	MaxInFlight int
	// MaxTargets is the most targets of one run of a BatchScript, which blocks Redis meanwhile. Zero
	// means 64; appending to 64 queues takes about a millisecond. In a Cluster it is always 1, since
	// the keys of a script must be in one slot.
	MaxTargets int
	// ReplicaTimeout is how long a round trip of durable calls waits for a replica, in addition to
	// Timeout. It should be less than the client's ReadTimeout, which ends the wait. Zero means 1 s.
	ReplicaTimeout time.Duration
	// Observe is called after every round trip with its duration, its number of commands and the
	// error of the connection, nil if Redis replied. A run of a BatchScript counts as one command, and
	// the WAIT of durable calls as another one. Nil means that round trips are not observed.
	Observe func(d time.Duration, commands int, err error)
}

// Pipe shares round trips to one Redis (single, Sentinel or Cluster).
type Pipe struct {
	client redis.UniversalClient
	opts   Options

	stateKnown atomic.Bool // the client knows the state of the Cluster

	mu     sync.Mutex // guards the fields below
	lanes  map[laneID]*lane
	limit  int // round trips in flight of one lane
	loaded map[loadedScript]struct{}
}

// New returns a Pipe over client. The client must not retry by itself (MaxRetries -1): a script
// that was interrupted by a timeout may have run.
func New(client redis.UniversalClient, opts Options) *Pipe {
	opts.Timeout = cmp.Or(opts.Timeout, 3*time.Second)
	opts.MaxBatch = cmp.Or(opts.MaxBatch, 512)
	opts.MaxInFlight = cmp.Or(opts.MaxInFlight, 8)
	opts.MaxTargets = cmp.Or(opts.MaxTargets, 64)
	if _, ok := client.(*redis.ClusterClient); ok {
		opts.MaxTargets = 1
	}
	opts.ReplicaTimeout = cmp.Or(opts.ReplicaTimeout, time.Second)
	return &Pipe{
		client: client, opts: opts, limit: opts.MaxInFlight,
		lanes: make(map[laneID]*lane), loaded: make(map[loadedScript]struct{}),
	}
}

// Cluster reports whether the Redis is a Cluster.
func (p *Pipe) Cluster() bool {
	_, ok := p.client.(*redis.ClusterClient)
	return ok
}

// Do sends cmd in a shared round trip and returns after the reply. If ctx ends first, Do returns
// ctx's error. The command may still run if it was already sent.
func (p *Pipe) Do(ctx context.Context, cmd redis.Cmder) error {
	return p.single(ctx, cmd, nil)
}

// Eval runs a script like Do runs a command.
func (p *Pipe) Eval(ctx context.Context, script *Script, keys []string, args ...any) (any, error) {
	cmd := script.evalSha(ctx, keys, args)
	if err := p.single(ctx, cmd, script); err != nil {
		return nil, err
	}
	return cmd.Val(), nil
}

// single sends one command.
func (p *Pipe) single(ctx context.Context, cmd redis.Cmder, script *Script) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c := &struct {
		call
		waiter
	}{call: call{cmd: cmd, script: script}}
	c.waiter.expect(1)
	c.call.waiter = &c.waiter
	p.enqueue(ctx, false, &c.call)
	if err := c.wait(ctx); err != nil {
		return err
	}
	if c.err == nil {
		countReplies(ctx, cmd)
	}
	return c.err
}

// roundTrip makes one round trip for plain calls.
func (p *Pipe) roundTrip(batch []*call) {
	ctx, cancel := context.WithTimeout(context.Background(), p.opts.Timeout)
	defer cancel()
	commands := makeCommands(ctx, batch, p.opts.MaxTargets)
	p.exec(ctx, commands)
	if unknown := unknownScripts(commands); len(unknown) > 0 {
		p.exec(ctx, unknown)
	}
	for _, c := range commands {
		c.answer()
	}
}

func (p *Pipe) exec(ctx context.Context, commands []command) {
	start := time.Now()
	pipeline := p.client.Pipeline()
	for _, c := range commands {
		_ = pipeline.Process(ctx, c.cmd) // only queues; each command keeps its own error
	}
	_, err := pipeline.Exec(ctx)
	if p.opts.Observe != nil {
		p.opts.Observe(time.Since(start), len(commands), firstConnectionError(err, commands))
	}
}

// firstConnectionError returns the first connection error of a pipeline. The pipeline's own error
// is the one of its first failed command: that may be an error reply of Redis, although a later
// command failed because a Cluster node is unreachable.
func firstConnectionError(err error, commands []command) error {
	err = connectionError(err)
	for i := 0; i < len(commands) && err == nil; i++ {
		err = connectionError(commands[i].cmd.Err())
	}
	return err
}

// connectionError returns err if it is an error of the connection, nil if Redis replied.
func connectionError(err error) error {
	if err == nil || errors.Is(err, redis.Nil) {
		return nil
	}
	if _, ok := errors.AsType[redis.Error](err); ok {
		return nil
	}
	return err
}
