package redispipe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrNotReplicated is returned when a script ran, but no replica confirmed within
// Options.ReplicaTimeout that it has what the script wrote.
var ErrNotReplicated = errors.New("redispipe: not confirmed by a replica in time")

// node is one Redis server: all of a single one or of Sentinel's, one of a Cluster.
type node interface{ Pipeline() redis.Pipeliner }

// lane is what goes to one node and ends in a WAIT there. Such round trips have slots of
// their own: a replica that is away holds up neither other calls nor other nodes.
type lane struct {
	waiting  []*durableCall
	inFlight int
}

type durableCall struct {
	call
	key       string // its slot says which node of a Cluster it is for
	asking    bool   // the node has the slot only by half yet
	redirects int
	err       error // the outcome beside that of cmd
}

// EvalDurable runs script as Eval does and then waits until at least one replica has
// what it wrote, by a WAIT on the same connection. When none has after
// Options.ReplicaTimeout, with a Redis without replicas always, the value is valid all
// the same and the error is ErrNotReplicated. keys must not be empty.
//
// A WAIT covers what was written on its connection. A script that found its work done
// already must write something nevertheless, or the answer may be about nothing.
func (p *Pipe) EvalDurable(ctx context.Context, script *Script, keys []string, args ...any) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	cmd := script.evalSha(ctx, keys, args)
	c := &durableCall{call: call{cmd: cmd, script: script, done: make(chan struct{})}, key: keys[0]}
	to, err := p.master(ctx, c.key)
	if err != nil {
		return nil, err
	}
	p.enqueueDurable(to, c)
	select {
	case <-c.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := cmd.Err(); err != nil {
		return nil, err
	}
	return cmd.Val(), c.err
}

// master is the node that key is on, as far as we know.
func (p *Pipe) master(ctx context.Context, key string) (node, error) {
	cluster, ok := p.client.(*redis.ClusterClient)
	if !ok {
		return p.client, nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.opts.Timeout)
	defer cancel()
	return cluster.MasterForKey(ctx, key)
}

func (p *Pipe) enqueueDurable(to node, c *durableCall) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.durable[to]
	if l == nil {
		l = &lane{}
		p.durable[to] = l
	}
	l.waiting = append(l.waiting, c)
	if l.inFlight < p.opts.MaxInFlight {
		l.inFlight++
		go p.drainDurable(to, l)
	}
}

// drainDurable runs round trips until nothing waits; then the lane goes, since nodes come
// and go, too.
func (p *Pipe) drainDurable(to node, l *lane) {
	for {
		p.mu.Lock()
		n := min(len(l.waiting), p.opts.MaxBatch)
		if n == 0 {
			l.waiting = nil
			if l.inFlight--; l.inFlight == 0 {
				delete(p.durable, to)
			}
			p.mu.Unlock()
			return
		}
		batch := l.waiting[:n:n]
		l.waiting = l.waiting[n:]
		p.mu.Unlock()
		p.durableTrip(to, batch)
	}
}

func (p *Pipe) durableTrip(to node, batch []*durableCall) {
	p.execDurable(to, batch)
	var unknown, astray []*durableCall
	for _, c := range batch {
		if isNoScript(c.cmd.Err()) {
			c.cmd.SetErr(nil)
			c.script.sendSource(c.cmd)
			unknown = append(unknown, c)
		}
	}
	if len(unknown) > 0 {
		p.execDurable(to, unknown)
	}
	for _, c := range batch {
		if p.misdirected(c) {
			astray = append(astray, c)
		} else {
			close(c.done)
		}
	}
	if len(astray) > 0 {
		go p.redirect(astray) // it takes its time, in which this lane goes on
	}
}

// execDurable is one pipeline with a WAIT at its end.
func (p *Pipe) execDurable(to node, batch []*durableCall) {
	ctx, cancel := context.WithTimeout(context.Background(), p.opts.Timeout+p.opts.ReplicaTimeout)
	defer cancel()
	start := time.Now()
	pipeline := to.Pipeline()
	for _, c := range batch {
		if c.asking {
			_ = pipeline.Process(ctx, redis.NewStatusCmd(ctx, "asking"))
		}
		_ = pipeline.Process(ctx, c.cmd)
	}
	replicas := redis.NewIntCmd(ctx, "wait", 1, max(p.opts.ReplicaTimeout.Milliseconds(), 1)) // 0 would be for ever
	_ = pipeline.Process(ctx, replicas)
	_, err := pipeline.Exec(ctx)
	outcome := ErrNotReplicated
	switch err := replicas.Err(); {
	case err != nil:
		outcome = fmt.Errorf("%w: %w", ErrNotReplicated, err)
	case replicas.Val() > 0:
		outcome = nil
	}
	calls := make([]*call, len(batch))
	for i, c := range batch {
		c.err, calls[i] = outcome, &c.call
	}
	if p.opts.Observe != nil {
		p.opts.Observe(time.Since(start), len(batch)+1, worst(err, calls))
	}
}
