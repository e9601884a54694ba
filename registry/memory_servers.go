package registry

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Join is like [Redis.Join].
func (m *Memory) Join(_ context.Context, s Server) error {
	if _, err := m.renew(s, 0); err != nil {
		return fmt.Errorf("join server %s: %w", s.ID, err)
	}
	return nil
}

// Beat is like [Redis.Beat].
func (m *Memory) Beat(ctx context.Context, s Server) error {
	_, err := m.Renew(ctx, s, 0)
	return err
}

// Renew is like [Redis.Renew].
func (m *Memory) Renew(_ context.Context, s Server, since int64) (Changes, error) {
	c, err := m.renew(s, since)
	if err != nil {
		return Changes{}, fmt.Errorf("beat of server %s: %w", s.ID, err)
	}
	return c, nil
}

func (m *Memory) renew(s Server, since int64) (Changes, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.deadLocked(s.ID) {
		m.live.remove(s.ID)
		return Changes{}, ErrDead
	}
	now := m.opts.Now()
	former, _ := m.leaseLocked(s.ID)
	s.StatesChanged, s.Can = former.StatesChanged, features
	s.StartedAt = time.UnixMilli(s.StartedAt.UnixMilli()).UTC()
	s.LastActive = time.UnixMilli(now.UnixMilli()).UTC()
	m.leases[s.ID] = lease{server: s, ends: now.Add(m.opts.Lease)}
	m.listed[s.ID] = struct{}{}
	c := m.live.renew(s, since, now, m.opts.Lease)
	c.Listed, c.StatesChanged = len(m.listed), s.StatesChanged
	return c, nil
}

// NotifyStates is like [Redis.NotifyStates].
func (m *Memory) NotifyStates(_ context.Context, servers []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, server := range servers {
		s, live := m.leaseLocked(server)
		if !live {
			continue
		}
		s.StatesChanged = max(s.StatesChanged, m.opts.Now().UnixMicro()) + 1
		m.leases[server] = lease{server: s, ends: m.leases[server].ends}
	}
	return nil
}

// Leave is like [Redis.Leave].
func (m *Memory) Leave(_ context.Context, server string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.removeLocked(server)
	return nil
}

// Forget is like [Redis.Forget].
func (m *Memory) Forget(_ context.Context, server string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.ContainsFunc(m.died, func(d Death) bool { return d.Server == server }) {
		m.died = append(m.died, Death{server, time.UnixMilli(m.opts.Now().UnixMilli()).UTC()})
		m.died = m.died[max(0, len(m.died)-maxDied):]
	}
	m.removeLocked(server)
	return nil
}

// Died is like [Redis.Died].
func (m *Memory) Died(context.Context) ([]Death, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	since := m.opts.Now().Add(-diedKeep)
	m.died = slices.DeleteFunc(m.died, func(d Death) bool { return d.At.Before(since) })
	list := slices.Clone(m.died)
	slices.Reverse(list)
	return list, nil
}

func (m *Memory) removeLocked(server string) {
	delete(m.heldChannels, server)
	delete(m.heldClients, server)
	delete(m.leases, server)
	m.live.remove(server)
	delete(m.listed, server)
}

// Servers is like [Redis.Servers].
func (m *Memory) Servers(context.Context) ([]Server, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var live []Server
	for _, id := range slices.Sorted(maps.Keys(m.listed)) {
		if s, ok := m.leaseLocked(id); ok {
			live = append(live, s)
		}
	}
	return live, nil
}

// Listed is like [Redis.Listed].
func (m *Memory) Listed(context.Context) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.listed)), nil
}

// Lease is like [Redis.Lease].
func (m *Memory) Lease(_ context.Context, server string) (Server, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, live := m.leaseLocked(server)
	return s, live, nil
}

// DeclareDead is like [Redis.DeclareDead].
func (m *Memory) DeclareDead(_ context.Context, server string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, live := m.leaseLocked(server); live {
		return false, nil
	}
	m.dead[server] = m.opts.Now().Add(m.opts.TombstoneTTL)
	m.live.remove(server)
	return true, nil
}

// DeclaredDead is like [Redis.DeclaredDead].
func (m *Memory) DeclaredDead(_ context.Context, server string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.deadLocked(server), nil
}

func (m *Memory) leaseLocked(server string) (Server, bool) {
	l, ok := m.leases[server]
	if ok && !m.opts.Now().Before(l.ends) {
		delete(m.leases, server)
		return Server{}, false
	}
	return l.server, ok
}

func (m *Memory) deadLocked(server string) bool {
	until, ok := m.dead[server]
	if ok && !m.opts.Now().Before(until) {
		delete(m.dead, server)
		return false
	}
	return ok
}
