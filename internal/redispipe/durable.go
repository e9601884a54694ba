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

// sendDurable has targets sent to the nodes that they are on.
func (p *Pipe) sendDurable(ctx context.Context, calls []*call) {
	nodes := make(map[node][]*call, 1)
	for _, c := range calls {
		to, err := p.master(ctx, c.target.Keys[0])
		if err != nil {
			c.err = err
			c.answered()
			continue
		}
		nodes[to] = append(nodes[to], c)
	}
	for to, calls := range nodes {
		p.enqueueDurable(to, calls...)
	}
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

func (p *Pipe) enqueueDurable(to node, calls ...*call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.durable[to]
	if l == nil {
		l = &lane{to: to}
		p.durable[to] = l
	}
	if l.join(calls, p.opts.MaxInFlight) {
		go p.drain(l)
	}
}

func (p *Pipe) durableTrip(to node, batch []*call) {
	ctx, cancel := context.WithTimeout(context.Background(), p.opts.Timeout+p.opts.ReplicaTimeout)
	defer cancel()
	commands := gather(ctx, batch, p.opts.MaxGroup)
	p.execDurable(ctx, to, commands)
	if unknown := unknownScripts(commands); len(unknown) > 0 {
		p.execDurable(ctx, to, unknown)
	}
	var astray []command
	for _, c := range commands {
		if p.misdirected(c) {
			astray = append(astray, c)
		} else {
			c.answer()
		}
	}
	if len(astray) > 0 {
		go p.redirect(astray) // it takes its time, in which this lane goes on
	}
}

// execDurable is one pipeline with a WAIT at its end.
func (p *Pipe) execDurable(ctx context.Context, to node, commands []command) {
	start := time.Now()
	pipeline := to.Pipeline()
	for _, c := range commands {
		if c.calls[0].asking {
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
	for _, c := range commands {
		for _, call := range c.calls {
			call.unconfirmed = outcome
		}
	}
	if p.opts.Observe != nil {
		p.opts.Observe(time.Since(start), len(commands)+1, worst(err, commands))
	}
}
