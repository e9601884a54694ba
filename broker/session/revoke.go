package session

import (
	"context"
	"slices"
	"strings"

	"switchboard/internal/wire"
	"switchboard/registry"
)

// Revoke closes the sessions of clients whose tokens were issued before a time, Unix ms, and
// returns how many it has closed before ctx ended. The store must have the revocation already: a
// client that is being connected checks its token there.
func (m *Manager) Revoke(ctx context.Context, clients []string, before int64, reason wire.CloseReason) (closed int) {
	m.revocations.Add(1)
	results, asked := make(chan bool, len(clients)), 0
	for _, client := range clients {
		if m.onLoop(client, func(s *Session) {
			used := s.state == open && s.credential.issued() < before
			if used {
				s.close(reason, tokenRevoked, 0)
			}
			results <- used
		}) {
			asked++
		}
	}
	for range asked {
		select {
		case used := <-results:
			if used {
				closed++
			}
		case <-ctx.Done():
			return closed
		}
	}
	return closed
}

// CheckTokens checks in the store the tokens of all sessions of some users, and closes those whose
// token was revoked. It also applies their subscriptions of the backend. Names for
// registry.AnonymousClient are those of clients without a user.
func (m *Manager) CheckTokens(users []string) {
	m.revocations.Add(1)
	for _, name := range users {
		if client, ok := registry.AnonymousClient(name); ok {
			m.binder.NoteLists(client)
			if s := m.clients.get(client); s != nil {
				s.shard.loop.Post(func() { s.readLists(nil) })
			}
		}
	}
	if users = m.clients.known(users); len(users) == 0 {
		return
	}
	slices.Sort(users)
	perShard := make(map[*shard][]*Session)
	for _, s := range m.clients.sessions() {
		if _, found := slices.BinarySearchFunc(users, s.user(), strings.Compare); found {
			perShard[s.shard] = append(perShard[s.shard], s)
		}
	}
	for sh, list := range perShard {
		sh.loop.Post(func() {
			list = slices.DeleteFunc(list, func(s *Session) bool { return s.state != open })
			sh.renewLater(list, false, func() {}) // which checks the tokens
		})
	}
}
