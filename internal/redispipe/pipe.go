package redispipe

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Options configures a Pipe.
type Options struct {
	// Timeout bounds one round trip, redirects of a Cluster included. Zero means 3 s.
	Timeout time.Duration
	// MaxBatch is the most commands in one round trip. Zero means 512.
	MaxBatch int
	// MaxInFlight is how many round trips may be under way at once: with few, what came a moment too
	// late for one waits for the end of it; with many the batches are smaller. Zero means 8.
	// Durable calls have as many for themselves, per node of a Cluster.
	MaxInFlight int
	// MaxGroup is the most targets that one run of a Group's script works through: others wait for Redis
	// meanwhile. Zero means 64, which take about a millisecond to append to. In a Cluster it is one, since
	// a script's keys have to be in one slot.
	MaxGroup int
	// ReplicaTimeout is how long a round trip of durable calls waits for a replica, beyond
	// Timeout. It should be less than the client's ReadTimeout, which cuts it off. Zero
	// means 1 s.
	ReplicaTimeout time.Duration
	// Observe, when not nil, is called after every round trip with its duration, its
	// number of commands (a group is one, the WAIT of durable ones counts) and the error of the
	// connection (nil when Redis answered).
	Observe func(d time.Duration, commands int, err error)
}

// Pipe shares round trips to one Redis (single, Sentinel or Cluster).
type Pipe struct {
	client redis.UniversalClient
	opts   Options

	mu      sync.Mutex // guards the lanes
	plain   lane
	durable map[node]*lane // those with something to do
}

// New returns a Pipe over client. The client must not retry by itself (MaxRetries
// -1): a script that was cut off by a time-out may have run.
func New(client redis.UniversalClient, opts Options) *Pipe {
	opts.Timeout = cmp.Or(opts.Timeout, 3*time.Second)
	opts.MaxBatch = cmp.Or(opts.MaxBatch, 512)
	opts.MaxInFlight = cmp.Or(opts.MaxInFlight, 8)
	opts.MaxGroup = cmp.Or(opts.MaxGroup, 64)
	if _, ok := client.(*redis.ClusterClient); ok {
		opts.MaxGroup = 1
	}
	opts.ReplicaTimeout = cmp.Or(opts.ReplicaTimeout, time.Second)
	return &Pipe{client: client, opts: opts, durable: make(map[node]*lane)}
}

// Do sends cmd with whatever else is waiting and returns when it was answered. When
// ctx ends first Do returns its error; the command may still be executed if it was sent by then.
func (p *Pipe) Do(ctx context.Context, cmd redis.Cmder) error {
	return p.alone(ctx, cmd, nil)
}

// Eval runs script as Do runs a command.
func (p *Pipe) Eval(ctx context.Context, script *Script, keys []string, args ...any) (any, error) {
	cmd := script.evalSha(ctx, keys, args)
	if err := p.alone(ctx, cmd, script); err != nil {
		return nil, err
	}
	return cmd.Val(), nil
}

// alone sends what is a command by itself.
func (p *Pipe) alone(ctx context.Context, cmd redis.Cmder, script *Script) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c := &struct {
		call
		ticket
	}{call: call{cmd: cmd, script: script}}
	c.ticket.expect(1)
	c.call.ticket = &c.ticket
	p.enqueue(ctx, &c.call)
	if err := c.wait(ctx); err != nil {
		return err
	}
	return c.err
}

// enqueue has calls sent with the next round trips, those of one caller together. It may run one before it returns if the
// caller has to wait in any case, which he has when ctx never ends.
func (p *Pipe) enqueue(ctx context.Context, calls ...*call) {
	p.mu.Lock()
	start := p.plain.join(calls, p.opts.MaxInFlight)
	p.mu.Unlock()
	switch {
	case start && ctx.Done() == nil:
		p.lead(&p.plain)
	case start:
		go p.drain(&p.plain)
	}
}

func (p *Pipe) roundTrip(batch []*call) {
	ctx, cancel := context.WithTimeout(context.Background(), p.opts.Timeout)
	defer cancel()
	commands := gather(ctx, batch, p.opts.MaxGroup)
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
		p.opts.Observe(time.Since(start), len(commands), worst(err, commands))
	}
}

// worst is the first error of the connection. The pipeline's own error is that of its first
// command that failed, so what Redis refused can stand before a node of a Cluster that is gone.
func worst(err error, commands []command) error {
	err = connectionError(err)
	for i := 0; i < len(commands) && err == nil; i++ {
		err = connectionError(commands[i].cmd.Err())
	}
	return err
}

// connectionError is err when it tells of the connection, nil when Redis itself answered.
func connectionError(err error) error {
	if err == nil || errors.Is(err, redis.Nil) {
		return nil
	}
	if _, ok := errors.AsType[redis.Error](err); ok {
		return nil
	}
	return err
}
