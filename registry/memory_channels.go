package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"switchboard/internal/slots"
)

// BindChannel is like [Redis.BindChannel].
func (m *Memory) BindChannel(_ context.Context, server, channel string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.deadLocked(server) {
		return fmt.Errorf("bind channel %s: %w", channel, ErrDead)
	}
	m.heldChannels.add(server, channel)
	m.channels.add(channel, server)
	return nil
}

// BindChannels is like [Redis.BindChannels].
func (m *Memory) BindChannels(ctx context.Context, server string, channels []string) []error {
	errs := make([]error, len(channels))
	for i, channel := range channels {
		errs[i] = m.BindChannel(ctx, server, channel)
	}
	return errs
}

// RebindChannels is like [Redis.RebindChannels].
func (m *Memory) RebindChannels(ctx context.Context, server string, channels []string, _ func(channel string) bool) (restored []string, errs []error) {
	for _, channel := range channels {
		if servers, _ := m.ChannelServers(ctx, channel); !slices.Contains(servers, server) {
			restored = append(restored, channel)
		}
	}
	return restored, m.BindChannels(ctx, server, channels)
}

// UnbindChannel is like [Redis.UnbindChannel].
func (m *Memory) UnbindChannel(_ context.Context, server, channel string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.channels.remove(channel, server)
	m.watchers.remove(channel, server)
	delete(m.rosters, rosterKey{channel, server})
	m.heldChannels.remove(server, channel)
	return nil
}

// PruneChannel is like [Redis.PruneChannel]. It always returns false: the list of channels cannot
// be wrong in memory.
func (m *Memory) PruneChannel(context.Context, string) (bool, error) { return false, nil }

// ChannelServers is like [Redis.ChannelServers].
func (m *Memory) ChannelServers(_ context.Context, channel string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.channels.get(channel), nil
}

// Channels is like [Redis.Channels]. The cursor is the last name of the page before.
func (m *Memory) Channels(_ context.Context, prefix, cursor string, limit int) ([]string, string, error) {
	m.mu.Lock()
	var names []string
	for name := range m.channels {
		if name > cursor && strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	m.mu.Unlock()
	names, next := firstNames(names, limit)
	return names, next, nil
}

// firstNames sorts names and returns the first limit of them, and the last one of these if there
// are more.
func firstNames(names []string, limit int) (first []string, next string) {
	slices.Sort(names)
	if limit = max(limit, 1); len(names) <= limit {
		return names, ""
	}
	return names[:limit], names[limit-1]
}

// ClientPage is like [Redis.ClientPage]. The cursor is the last client of the page before.
func (m *Memory) ClientPage(_ context.Context, server, cursor string, limit int) ([]string, string, error) {
	m.mu.Lock()
	var clients []string
	for client := range m.heldClients[server] {
		if client > cursor {
			clients = append(clients, client)
		}
	}
	m.mu.Unlock()
	clients, next := firstNames(clients, limit)
	return clients, next, nil
}

// HoldClients is like [Redis.HoldClients].
func (m *Memory) HoldClients(_ context.Context, server string, clients []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(clients) > 0 && m.deadLocked(server) {
		return fmt.Errorf("hold %d clients: %w", len(clients), ErrDead)
	}
	for _, client := range clients {
		m.heldClients.add(server, client)
	}
	return nil
}

// HoldChannels is like [Redis.HoldChannels].
func (m *Memory) HoldChannels(_ context.Context, server string, channels []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(channels) > 0 && m.deadLocked(server) {
		return fmt.Errorf("hold %d channels: %w", len(channels), ErrDead)
	}
	for _, channel := range channels {
		m.heldChannels.add(server, channel)
	}
	return nil
}

// ListChannels is like [Redis.ListChannels]. The list of channels is that of the bindings.
func (m *Memory) ListChannels(ctx context.Context, server string, channels []string) error {
	return m.HoldChannels(ctx, server, channels)
}

// ListedIn is like [Redis.ListedIn].
func (m *Memory) ListedIn(_ string, of *slots.Set) bool {
	return of.HasKey(keys(m.opts.Prefix).channelList())
}

// KeepChannelList is like [Redis.KeepChannelList]. It does nothing: there is one list.
func (m *Memory) KeepChannelList(bool) {}

// MoveChannelList is like [Redis.MoveChannelList]. It does nothing: there is one list.
func (m *Memory) MoveChannelList(context.Context) (int, error) { return 0, nil }

// DropClient is like [Redis.DropClient].
func (m *Memory) DropClient(_ context.Context, server, client string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.heldClients.remove(server, client)
	return nil
}

// HeldChannels is like [Redis.HeldChannels].
func (m *Memory) HeldChannels(_ context.Context, server string, n int) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.heldChannels.some(server, n), nil
}

// HeldClients is like [Redis.HeldClients].
func (m *Memory) HeldClients(_ context.Context, server string, n int) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.heldClients.some(server, n), nil
}
