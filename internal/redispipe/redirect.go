package redispipe

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Cluster client follows MOVED and ASK by itself, but a WAIT has no key, so it cannot be sent to
// the same node that way. Durable calls therefore go to one node and are redirected in this file.

const (
	// maxRedirects is the most redirects of one call, as in go-redis.
	maxRedirects = 3
	// firstBackoff is the backoff before the second redirect of a call. It quadruples each time.
	firstBackoff = 16 * time.Millisecond
)

// misdirected reports whether c did not run, but may run on another node.
func (p *Pipe) misdirected(c command) bool {
	if _, ok := p.client.(*redis.ClusterClient); !ok || c.calls[0].redirects == maxRedirects {
		return false
	}
	err := c.cmd.Err()
	_, moved := redis.IsMovedError(err)
	_, ask := redis.IsAskError(err)
	return moved || ask || neverConnected(err)
}

// neverConnected reports whether dialing failed, so that nothing was sent. After any other
// connection error the script may have run.
func neverConnected(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// redirect sends calls to the nodes that now hold their keys. It reads the state of the Cluster
// once for all calls: if a node is gone, all its calls come here.
func (p *Pipe) redirect(commands []command) {
	var wait time.Duration
	for _, c := range commands {
		if n := c.calls[0].redirects; n > 0 {
			wait = max(wait, firstBackoff<<(2*(n-1)))
		}
	}
	time.Sleep(wait)
	ctx, cancel := context.WithTimeout(context.Background(), p.opts.Timeout)
	defer cancel()
	nodes := p.nodes(ctx)
	for _, c := range commands {
		only := c.calls[0] // in a Cluster each run has one target
		to, err := p.next(ctx, nodes, c.cmd.Err(), only)
		if err != nil {
			c.answer() // with its current error
			continue
		}
		only.redirects++
		p.start(ctx, p.join(laneID{to, true}, only))
	}
}

// next returns the node for a call that failed with err: the node named in err, else the node by
// the new state of the Cluster.
func (p *Pipe) next(ctx context.Context, nodes map[string]node, err error, c *call) (node, error) {
	addr, ask := redis.IsAskError(err)
	if !ask {
		addr, _ = redis.IsMovedError(err)
	}
	if to, known := nodes[addr]; known {
		c.asking = ask
		return to, nil
	}
	c.asking = false
	return p.master(ctx, c.target.Keys[0])
}

// nodes reloads the state of the Cluster and returns its nodes by address.
func (p *Pipe) nodes(ctx context.Context) map[string]node {
	var mu sync.Mutex // guards found
	found := make(map[string]node)
	_ = p.client.(*redis.ClusterClient).ForEachShard(ctx, func(_ context.Context, n *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		found[n.Options().Addr] = n
		return nil
	})
	return found
}
