package registry

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"switchboard/internal/meter"
)

// BindUsers is like [Redis.BindUsers].
func (m *Memory) BindUsers(_ context.Context, list []UserBinding) []error {
	m.mu.Lock()
	defer m.mu.Unlock()
	errs := make([]error, len(list))
	for i, b := range list {
		list[i].Watchers = nil
		if errs[i] = m.checkTokenLocked(b); errs[i] == nil {
			var written bool
			if written, errs[i] = m.bindUserLocked(b.User, b.Binding); written {
				list[i].Watchers = m.userWatchersLocked(b.User)
			}
		}
		if len(m.subscribed) > 0 {
			list[i].Subscribed = len(m.subscriptionsLocked(tokensOf{user: b.User}))+len(m.subscriptionsLocked(tokensOf{b.User, b.Client})) > 0
		}
	}
	return errs
}

func (m *Memory) bindUserLocked(name string, b Binding) (written bool, err error) {
	u := m.userLocked(name)
	if u == nil {
		expireSome(m.users, func(name string) { m.userLocked(name) })
		u = &user{clients: map[string]Binding{}}
		m.users[name] = u
	}
	current, known := u.clients[b.Client]
	if known && current.Generation > b.Generation {
		return false, nil
	}
	if current.Server == "" && m.opts.MaxOnline > 0 && u.online() >= m.opts.MaxOnline ||
		!known && len(u.clients) >= MaxClients && !u.evict() {
		return false, fmt.Errorf("bind client %s of user %s: %w", b.Client, name, ErrTooManyClients)
	}
	u.clients[b.Client] = b
	u.ends = m.opts.Now().Add(m.opts.UserTTL)
	return true, nil
}

// UsersHave is like [Redis.UsersHave].
func (m *Memory) UsersHave(_ context.Context, list []UserBinding) ([]bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	have := make([]bool, len(list))
	for i, b := range list {
		u := m.userLocked(b.User)
		have[i] = u != nil && u.clients[b.Client] == b.Binding
	}
	return have, nil
}

// ReleaseUser is like [Redis.ReleaseUser].
func (m *Memory) ReleaseUser(_ context.Context, name, client string, generation int64) (watchers []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if u := m.userLocked(name); u != nil {
		if b, ok := u.clients[client]; ok && b.Generation == generation {
			b.Server = ""
			u.clients[client] = b
		}
	}
	return m.userWatchersLocked(name), nil
}

// ForgetUser is like [Redis.ForgetUser].
func (m *Memory) ForgetUser(_ context.Context, name, client string, generation int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := m.userLocked(name)
	if u == nil || u.clients[client].Generation > generation {
		return nil
	}
	delete(u.clients, client)
	if len(u.clients) == 0 {
		delete(m.users, name)
	}
	return nil
}

// User is like [Redis.User].
func (m *Memory) User(ctx context.Context, name string) ([]Binding, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := m.userLocked(name)
	if u == nil {
		return nil, nil
	}
	bindings := slices.Collect(maps.Values(u.clients))
	sortBindings(bindings)
	for _, b := range bindings {
		meter.Add(ctx, len(b.Client)+len(b.Server)+recordBytes)
	}
	return bindings, nil
}

// Users is like [Redis.Users].
func (m *Memory) Users(ctx context.Context, users []string) ([][]Binding, error) {
	found := make([][]Binding, len(users))
	for i, user := range users {
		found[i], _ = m.User(ctx, user)
	}
	return found, nil
}

// evict removes the offline client with the lowest generation. It returns false if none is offline.
func (u *user) evict() bool {
	var oldest *Binding
	for _, b := range u.clients {
		if b.Server == "" && (oldest == nil || b.Generation < oldest.Generation) {
			oldest = &b
		}
	}
	if oldest == nil {
		return false
	}
	delete(u.clients, oldest.Client)
	return true
}

// onlineClients returns the bindings of a client that is online, sorted; "" stands for all clients.
func (u *user) onlineClients(client string) []Binding {
	list := slices.Collect(maps.Values(u.clients))
	sortBindings(list)
	return slices.Clip(onlineOf(list, client))
}

// online returns the number of clients that are online.
func (u *user) online() (n int) {
	for _, b := range u.clients {
		if b.Server != "" {
			n++
		}
	}
	return n
}

func (m *Memory) userLocked(name string) *user {
	u := m.users[name]
	if u != nil && !m.opts.Now().Before(u.ends) {
		delete(m.users, name)
		return nil
	}
	return u
}

// expireSome bounds the memory for users, or other keys, that do not come back. expire removes an
// entry that has ended. Each new entry checks a few others, in the random order of a map, so that
// expired entries are removed faster than new ones come.
func expireSome[K comparable, V any](entries map[K]V, expire func(key K)) {
	checks := 4
	for key := range entries {
		if checks--; checks < 0 {
			return
		}
		expire(key)
	}
}
