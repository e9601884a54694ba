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
func (p *Pipe) misdirected(c *durableCall) bool {
	if _, ok := p.client.(*redis.ClusterClient); !ok || c.redirects == maxRedirects {
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
func (p *Pipe) redirect(calls []*durableCall) {
	var wait time.Duration
	for _, c := range calls {
		if c.redirects > 0 {
			wait = max(wait, firstBackoff<<(2*(c.redirects-1)))
		}
	}
	time.Sleep(wait)
	ctx, cancel := context.WithTimeout(context.Background(), p.opts.Timeout)
	defer cancel()
	nodes := p.nodes(ctx)
	for _, c := range calls {
		to, err := p.next(ctx, nodes, c)
		if err != nil {
			close(c.done) // with the error that it has
			continue
		}
		c.cmd.SetErr(nil)
		c.redirects++
		p.enqueueDurable(to, c)
	}
}

// next is where c goes: to the node that the answer named, else to the one that the
// fresh state of the Cluster gives.
func (p *Pipe) next(ctx context.Context, nodes map[string]node, c *durableCall) (node, error) {
	err := c.cmd.Err()
	addr, ask := redis.IsAskError(err)
	if !ask {
		addr, _ = redis.IsMovedError(err)
	}
	if to, known := nodes[addr]; known {
		c.asking = ask
		return to, nil
	}
	c.asking = false
	return p.master(ctx, c.key)
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
