package redispipe

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
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
	// MaxInFlight is how many round trips may be under way at once: one keeps
	// batches deepest, a second keeps one slow reply from holding everybody up.
	// Zero means 2.
	// Durable calls have as many for themselves, per node of a Cluster.
	MaxInFlight int
	// ReplicaTimeout is how long a round trip of durable calls waits for a replica, beyond
	// Timeout. It should be less than the client's ReadTimeout, which cuts it off. Zero
	// means 1 s.
	ReplicaTimeout time.Duration
	// Observe, when not nil, is called after every round trip with its duration, its
	// number of commands (the WAIT of durable ones counts) and the error of the connection
	// (nil when Redis answered).
	Observe func(d time.Duration, commands int, err error)
}

// Pipe shares round trips to one Redis (single, Sentinel or Cluster).
type Pipe struct {
	client redis.UniversalClient
	opts   Options

	mu       sync.Mutex // guards the fields below
	waiting  []*call
	inFlight int
	durable  map[node]*lane // those with something to do
}

type call struct {
	cmd    redis.Cmder
	script *Script // nil for a plain command
	done   chan struct{}
	gone   atomic.Bool // the caller no longer waits: what was not sent by then never is
}

// New returns a Pipe over client. The client must not retry by itself (MaxRetries
// -1): a script that was cut off by a time-out may have run.
func New(client redis.UniversalClient, opts Options) *Pipe {
	opts.Timeout = cmp.Or(opts.Timeout, 3*time.Second)
	opts.MaxBatch = cmp.Or(opts.MaxBatch, 512)
	opts.MaxInFlight = cmp.Or(opts.MaxInFlight, 2)
	opts.ReplicaTimeout = cmp.Or(opts.ReplicaTimeout, time.Second)
	return &Pipe{client: client, opts: opts, durable: make(map[node]*lane)}
}

// Do sends cmd with whatever else is waiting and returns when it was answered. When
// ctx ends first Do returns its error; the command may still be executed if it was sent by then.
func (p *Pipe) Do(ctx context.Context, cmd redis.Cmder) error {
	return p.enqueue(ctx, &call{cmd: cmd, done: make(chan struct{})})
}

// Eval runs script as Do runs a command.
func (p *Pipe) Eval(ctx context.Context, script *Script, keys []string, args ...any) (any, error) {
	cmd := script.evalSha(ctx, keys, args)
	if err := p.enqueue(ctx, &call{cmd: cmd, script: script, done: make(chan struct{})}); err != nil {
		return nil, err
	}
	return cmd.Val(), nil
}

func (p *Pipe) enqueue(ctx context.Context, c *call) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.mu.Lock()
	p.waiting = append(p.waiting, c)
	start := p.inFlight < p.opts.MaxInFlight
	if start {
		p.inFlight++
	}
	p.mu.Unlock()
	if start {
		go p.drain()
	}
	if ctx.Done() == nil { // a push: a select would take two locks more, 7 % of a batch
		<-c.done
		return c.cmd.Err()
	}
	select {
	case <-c.done:
		return c.cmd.Err()
	case <-ctx.Done():
		c.gone.Store(true)
		return ctx.Err()
	}
}

// drain runs round trips until nothing waits.
func (p *Pipe) drain() {
	for {
		p.mu.Lock()
		n := min(len(p.waiting), p.opts.MaxBatch)
		if n == 0 {
			p.waiting = nil
			p.inFlight--
			p.mu.Unlock()
			return
		}
		batch := p.waiting[:n:n]
		p.waiting = p.waiting[n:]
		p.mu.Unlock()
		// What somebody gave up on in an outage must not come true behind what he did instead.
		if batch = slices.DeleteFunc(batch, func(c *call) bool { return c.gone.Load() }); len(batch) > 0 {
			p.roundTrip(batch)
		}
	}
}

func (p *Pipe) roundTrip(batch []*call) {
	ctx, cancel := context.WithTimeout(context.Background(), p.opts.Timeout)
	defer cancel()
	p.exec(ctx, batch)
	var unknown []*call
	for _, c := range batch {
		if c.script != nil && isNoScript(c.cmd.Err()) {
			c.cmd.SetErr(nil)
			c.script.sendSource(c.cmd)
			unknown = append(unknown, c)
		}
	}
	if len(unknown) > 0 {
		p.exec(ctx, unknown)
	}
	for _, c := range batch {
		close(c.done)
	}
}

func (p *Pipe) exec(ctx context.Context, batch []*call) {
	start := time.Now()
	pipeline := p.client.Pipeline()
	for _, c := range batch {
		_ = pipeline.Process(ctx, c.cmd) // only queues; each command keeps its own error
	}
	_, err := pipeline.Exec(ctx)
	if p.opts.Observe != nil {
		p.opts.Observe(time.Since(start), len(batch), worst(err, batch))
	}
}

// worst is the first error of the connection. The pipeline's own error is that of its first
// command that failed, so what Redis refused can stand before a node of a Cluster that is gone.
func worst(err error, batch []*call) error {
	err = connectionError(err)
	for i := 0; i < len(batch) && err == nil; i++ {
		err = connectionError(batch[i].cmd.Err())
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

func isNoScript(err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT")
}
