// Package truth implements events.Truth over a registry and a queue.
package truth

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"switchboard/queue"
	"switchboard/registry"
)

// Registry has the methods of a registry that Truth calls.
type Registry interface {
	User(ctx context.Context, user string) ([]registry.Binding, error)
	ChannelServers(ctx context.Context, channel string) ([]string, error)
	Lease(ctx context.Context, server string) (s registry.Server, live bool, err error)
	Listed(ctx context.Context) ([]string, error)
	DeclaredDead(ctx context.Context, server string) (bool, error)
}

// Queue has the methods of a queue that Truth calls.
type Queue interface {
	Client(ctx context.Context, client string) (c queue.Client, known bool, err error)
	StepStates(ctx context.Context, steps []queue.StateStep) []queue.Outcome[queue.Appended]
	ReadStates(ctx context.Context, reads []queue.StateRead) []queue.Outcome[queue.StatePage]
	ReadChannels(ctx context.Context, reads []queue.ChannelRead) []queue.Outcome[queue.Page]
}

// Truth implements events.Truth.
type Truth struct {
	registry Registry
	queue    Queue
}

// New returns a Truth that reads from r and q.
func New(r Registry, q Queue) Truth { return Truth{r, q} }

// Online implements events.Truth.
func (t Truth) Online(ctx context.Context, users []string) ([]bool, error) {
	return t.present(ctx, users, func(ctx context.Context, user string) ([]string, error) {
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
	return t.present(ctx, channels, t.registry.ChannelServers)
}

// Acknowledged implements events.Truth.
func (t Truth) Acknowledged(ctx context.Context, client string, id int64) (bool, error) {
	c, known, err := t.queue.Client(ctx, client)
	return known && c.Acked >= id, err
}

// present reports for each name whether one of its servers is alive. The calls share round trips.
func (t Truth) present(ctx context.Context, names []string, servers func(context.Context, string) ([]string, error)) ([]bool, error) {
	present := make([]bool, len(names))
	cache := &serverCache{registry: t.registry, servers: map[string]func() (bool, error){}}
	group, ctx := errgroup.WithContext(ctx)
	for i, name := range names {
		group.Go(func() error {
			list, err := servers(ctx, name)
			if err != nil {
				return err
			}
			slices.Sort(list)
			for _, server := range slices.Compact(list) {
				if server == "" { // the client has disconnected
					continue
				}
				if present[i], err = cache.alive(ctx, server); present[i] || err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return present, nil
}

// serverCache queries the registry once for each server.
type serverCache struct {
	registry Registry

	mu      sync.Mutex // guards the field below
	servers map[string]func() (bool, error)
}

func (c *serverCache) alive(ctx context.Context, server string) (bool, error) {
	c.mu.Lock()
	query := c.servers[server]
	if query == nil {
		query = sync.OnceValues(func() (bool, error) { return c.query(ctx, server) })
		c.servers[server] = query
	}
	c.mu.Unlock()
	return query()
}

// query reports whether a server is alive: it has a lease, or it is listed and not declared dead. A
// listed server whose lease has expired may renew it within a second. If query returned false in
// between, each of its users would cause two events. If the server is dead, a janitor declares it
// dead after two rounds and removes its bindings. That schedules a check of each of its users and
// channels.
func (c *serverCache) query(ctx context.Context, server string) (bool, error) {
	if _, live, err := c.registry.Lease(ctx, server); live || err != nil {
		return live, err
	}
	listed, err := c.registry.Listed(ctx)
	if err != nil || !slices.Contains(listed, server) {
		return false, err
	}
	dead, err := c.registry.DeclaredDead(ctx, server)
	return !dead, err
}
