package redispipe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrNotReplicated is returned if a script ran, but no replica confirmed its writes within
// Options.ReplicaTimeout.
var ErrNotReplicated = errors.New("redispipe: not confirmed by a replica in time")

// durableTrip makes one round trip for durable calls.
func (p *Pipe) durableTrip(to node, batch []*call) {
	ctx, cancel := context.WithTimeout(context.Background(), p.opts.Timeout+p.opts.ReplicaTimeout)
	defer cancel()
	commands := makeCommands(ctx, batch, p.opts.MaxTargets)
	p.sendNewSources(to, commands)
	p.execDurable(ctx, to, commands)
	if unknown := unknownScripts(commands); len(unknown) > 0 {
		// The node has lost its scripts, and the first WAIT may have taken all the time.
		ctx, cancel := context.WithTimeout(context.Background(), p.opts.Timeout+p.opts.ReplicaTimeout)
		defer cancel()
		p.execDurable(ctx, to, unknown)
	}
	p.setLoaded(to, commands)
	var redirected []command
	for _, c := range commands {
		if p.misdirected(c) {
			redirected = append(redirected, c)
		} else {
			c.answer()
		}
	}
	if len(redirected) > 0 {
		go p.redirect(redirected) // takes a while; the lane goes on meanwhile
	}
}

// loadedScript is a script that a node has run by its source.
type loadedScript struct {
	node   node
	script *Script
}

// maxLoaded bounds Pipe.loaded. The nodes of a Cluster change.
const maxLoaded = 1000

// sendNewSources makes the first command of each script that to has not run yet send the source.
// Otherwise a call would wait for a replica twice: the WAIT after a NOSCRIPT waits, too, if there
// is no replica.
func (p *Pipe) sendNewSources(to node, commands []command) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var sent []*Script
	for _, c := range commands {
		script := c.calls[0].script
		if _, loaded := p.loaded[loadedScript{to, script}]; !loaded && !slices.Contains(sent, script) {
			script.sendSource(c.cmd)
			sent = append(sent, script)
		}
	}
}

// setLoaded records the scripts that to has run.
func (p *Pipe) setLoaded(to node, commands []command) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.loaded) > maxLoaded {
		clear(p.loaded)
	}
	for _, c := range commands {
		if c.cmd.Err() == nil {
			p.loaded[loadedScript{to, c.calls[0].script}] = struct{}{}
		}
	}
}

// execDurable sends one pipeline that ends with a WAIT.
func (p *Pipe) execDurable(ctx context.Context, to node, commands []command) {
	start := time.Now()
	pipeline := to.Pipeline()
	for _, c := range commands {
		if c.calls[0].asking {
			_ = pipeline.Process(ctx, redis.NewStatusCmd(ctx, "asking"))
		}
		_ = pipeline.Process(ctx, c.cmd)
	}
	replicas := redis.NewIntCmd(ctx, "wait", 1, max(p.opts.ReplicaTimeout.Milliseconds(), 1)) // 0 would wait without limit
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
		p.opts.Observe(time.Since(start), len(commands)+1, firstConnectionError(err, commands))
	}
}
