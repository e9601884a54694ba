package registry

import (
	"context"
	"fmt"
	"time"
)

// tokensOf are the tokens of a user for one client, or its subscriptions; the client "" stands for
// all.
type tokensOf struct{ user, client string }

// revocation is what Memory keeps of a Revocation.
type revocation struct {
	before int64 // Unix ms
	ends   time.Time
}

// Revoke is like [Redis.Revoke]. The error of a durable call is ErrNoReplicas.
func (m *Memory) Revoke(_ context.Context, v Revocation) (Revoked, error) {
	if v.Durable {
		return Revoked{}, ErrNoReplicas
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now, key := m.opts.Now(), tokensOf{v.User, v.Client}
	before := v.Before
	if before == 0 {
		before = now.UnixMilli()
	}
	before = max(before, m.revokedLocked(key))
	expireSome(m.revoked, func(key tokensOf) {
		if m.revokedLocked(key) == 0 {
			delete(m.revoked, key)
		}
	})
	ends := now.Add(m.opts.RevokedTTL)
	m.revoked[key] = revocation{before, ends}
	revoked := Revoked{Before: before, Until: ends.UnixMilli()}
	if u := m.userLocked(v.User); u != nil {
		revoked.Clients = u.onlineClients(v.Client)
	}
	return revoked, nil
}

// CheckTokens is like [Redis.CheckTokens].
func (m *Memory) CheckTokens(_ context.Context, list []UserBinding) []error {
	m.mu.Lock()
	defer m.mu.Unlock()
	errs := make([]error, len(list))
	for i, b := range list {
		errs[i] = m.checkTokenLocked(b)
	}
	return errs
}

func (m *Memory) checkTokenLocked(b UserBinding) error {
	if len(m.revoked) > 0 && b.Issued < max(m.revokedLocked(tokensOf{user: b.User}), m.revokedLocked(tokensOf{b.User, b.Client})) {
		return fmt.Errorf("token of user %s: %w", b.User, ErrRevoked)
	}
	return nil
}

// RevokedSince is like [Redis.RevokedSince]. The only server hears of all revocations.
func (*Memory) RevokedSince(_ context.Context, since int64) (users []string, next int64, more bool, err error) {
	return nil, since, false, nil
}

// RevokedBefore is like [Redis.RevokedBefore].
func (m *Memory) RevokedBefore(_ context.Context, user string) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.revokedLocked(tokensOf{user: user}), nil
}

// revokedLocked returns the time of a revocation that is in force, or 0.
func (m *Memory) revokedLocked(key tokensOf) int64 {
	if v, found := m.revoked[key]; found && m.opts.Now().Before(v.ends) {
		return v.before
	}
	return 0
}
