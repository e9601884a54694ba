package member

import (
	"context"
	"sync"
	"time"

	"switchboard/registry"
)

// numbers are the live servers with what only their leases have: the number of their connections,
// for example.
type numbers struct {
	mu      sync.Mutex // guards the fields below, and is held while the leases are read
	servers []registry.Server
	readAt  time.Time
}

// Numbers returns the live servers with their numbers, sorted by id. It reads them from the store,
// at most once a beat. If that fails, it returns what it has read last.
func (m *Member) Numbers(ctx context.Context) []registry.Server {
	n := &m.numbers
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.servers != nil && time.Since(n.readAt) < m.opts.Beat {
		return n.servers
	}
	servers, err := m.opts.Registry.Servers(ctx)
	if err != nil {
		m.opts.Log.Warn().Err(err).Msg("could not read the numbers of the servers")
		if n.servers == nil {
			return m.Servers()
		}
		return n.servers
	}
	n.servers, n.readAt = servers, time.Now()
	return servers
}
