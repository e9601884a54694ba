package redispipe

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Cluster client follows MOVED and ASK by itself, but a WAIT has no key by which it
// could be sent along. So durable calls go to one node, and are redirected here.

const (
	// maxRedirects is how often one call is sent elsewhere, as many times as go-redis does.
	maxRedirects = 3
	// firstBackoff is before the second redirect of a call; it quadruples.
	firstBackoff = 16 * time.Millisecond
)

// misdirected says whether c was not executed, and may be elsewhere.
func (p *Pipe) misdirected(c command) bool {
	if _, ok := p.client.(*redis.ClusterClient); !ok || c.calls[0].redirects == maxRedirects {
		return false
	}
	err := c.cmd.Err()
	_, moved := redis.IsMovedError(err)
	_, ask := redis.IsAskError(err)
	return moved || ask || neverConnected(err)
}

// neverConnected says that nothing can have been sent: any other error of a connection
// leaves open whether the script ran.
func neverConnected(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// redirect sends calls to where the Cluster has their keys now. It is asked once for all
// of them, since a node that is gone sends everybody here.
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
		only := c.calls[0] // there are no groups of several in a Cluster
		to, err := p.next(ctx, nodes, c.cmd.Err(), only)
		if err != nil {
			c.answer() // with the error that it has
			continue
		}
		only.redirects++
		p.enqueueDurable(to, only)
	}
}

// next is where a call goes that came back with err: to the node that the answer named, else to the one that the
// fresh state of the Cluster gives.
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

// nodes asks the Cluster for its state and returns its nodes by address.
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
