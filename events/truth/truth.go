// Package truth answers what package events asks, from a registry and a queue.
package truth

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"switchboard/queue"
	"switchboard/registry"
)

// Registry is what is needed of a registry.
type Registry interface {
	User(ctx context.Context, user string) ([]registry.Binding, error)
	ChannelServers(ctx context.Context, channel string) ([]string, error)
	Lease(ctx context.Context, server string) (s registry.Server, live bool, err error)
	Listed(ctx context.Context) ([]string, error)
	DeclaredDead(ctx context.Context, server string) (bool, error)
}

// Queue is what is needed of a queue.
type Queue interface {
	Client(ctx context.Context, client string) (c queue.Client, known bool, err error)
}

// Truth is who is there by the stores.
type Truth struct {
	registry Registry
	queue    Queue
}

// New looks into these.
func New(r Registry, q Queue) Truth { return Truth{r, q} }

// Online implements events.Truth.
func (t Truth) Online(ctx context.Context, users []string) ([]bool, error) {
	return t.each(ctx, users, func(ctx context.Context, user string) ([]string, error) {
		bindings, err := t.registry.User(ctx, user)
		servers := make([]string, len(bindings))
		for i, b := range bindings {
			servers[i] = b.Server
		}
		return servers, err
	})
}

// Occupied implements events.Truth.
func (t Truth) Occupied(ctx context.Context, channels []string) ([]bool, error) {
	return t.each(ctx, channels, t.registry.ChannelServers)
}

// Acknowledged implements events.Truth.
func (t Truth) Acknowledged(ctx context.Context, client string, id int64) (bool, error) {
	c, known, err := t.queue.Client(ctx, client)
	return known && c.Acked >= id, err
}

// each says of every name whether one of its servers is there; the calls share round trips.
func (t Truth) each(ctx context.Context, names []string, servers func(context.Context, string) ([]string, error)) ([]bool, error) {
	there := make([]bool, len(names))
	seen := &census{registry: t.registry, servers: map[string]func() (bool, error){}}
	group, ctx := errgroup.WithContext(ctx)
	for i, name := range names {
		group.Go(func() error {
			of, err := servers(ctx, name)
			if err != nil {
				return err
			}
			slices.Sort(of)
			for _, server := range slices.Compact(of) {
				if server == "" { // the client said goodbye
					continue
				}
				if there[i], err = seen.there(ctx, server); there[i] || err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return there, nil
}

// census asks once for each server.
type census struct {
	registry Registry

	mu      sync.Mutex // guards the field below
	servers map[string]func() (bool, error)
}

func (c *census) there(ctx context.Context, server string) (bool, error) {
	c.mu.Lock()
	ask := c.servers[server]
	if ask == nil {
		ask = sync.OnceValues(func() (bool, error) { return c.ask(ctx, server) })
		c.servers[server] = ask
	}
	c.mu.Unlock()
	return ask()
}

// ask says whether a server is there: it has a lease, or is listed and nobody has declared it dead. One that only
// misses its lease may be back with all its clients in a second, and would make two events of each; if it is dead a
// janitor buries it after two looks, and then says of each of its users and channels that they changed.
func (c *census) ask(ctx context.Context, server string) (bool, error) {
	if _, live, err := c.registry.Lease(ctx, server); live || err != nil {
		return live, err
	}
	listed, err := c.registry.Listed(ctx)
	if err != nil || !slices.Contains(listed, server) {
		return false, err
	}
	buried, err := c.registry.DeclaredDead(ctx, server)
	return !buried, err
}
