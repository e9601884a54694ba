package session

import (
	"context"
	"slices"
	"strings"

	"switchboard/internal/wire"
	"switchboard/queue"
	"switchboard/registry"
)

// The reasons with which connections are closed as expired.
const (
	tokenExpired = "the token ran out"
	tokenRevoked = "the token was revoked"
)

// hold adds the clients, which are those of the claims, to s_c_. In the same round trip it checks
// whether their tokens were revoked. It returns an error for each claim, or nil if there is none.
func (b *binder) hold(ctx context.Context, server string, clients []string, claims []queue.Claim, issued []int64) []error {
	var list []registry.UserBinding // the claims with a token
	var at []int                    // the index in claims of each entry of list
	for i := range claims {
		if c := &claims[i]; c.User != "" && b.opts.Access.Verify != nil {
			list = append(list, registry.UserBinding{User: c.User, Binding: registry.Binding{Client: c.Client}, Issued: issued[i]})
			at = append(at, i)
		}
	}
	if len(list) == 0 {
		if err := b.opts.Registry.HoldClients(ctx, server, clients); err != nil {
			return slices.Repeat([]error{err}, len(claims))
		}
		return nil
	}
	checked := b.checkTokens(ctx, list)
	err := b.opts.Registry.HoldClients(ctx, server, clients)
	var errs []error
	for k, refused := range <-checked {
		if refused != nil && errs == nil {
			errs = make([]error, len(claims))
		}
		if refused != nil {
			errs[at[k]] = refused
		}
	}
	if err != nil {
		errs = slices.Repeat([]error{err}, len(claims))
	}
	return errs
}

// checkTokens checks tokens in a goroutine, and sends the errors to checked.
func (b *binder) checkTokens(ctx context.Context, list []registry.UserBinding) (checked <-chan []error) {
	c := make(chan []error, 1)
	go func() { c <- b.opts.Registry.CheckTokens(ctx, list) }()
	return c
}

// checkToken returns an error if the client's token was revoked, or if that is not known.
func (b *binder) checkToken(ctx context.Context, client string, issued int64) error {
	user := wire.UserOf(client)
	if user == "" || b.opts.Access.Verify == nil {
		return nil
	}
	return b.opts.Registry.CheckTokens(ctx, []registry.UserBinding{{User: user, Binding: registry.Binding{Client: client}, Issued: issued}})[0]
}

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
			if s := m.clients.getForLists(client); s != nil {
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
