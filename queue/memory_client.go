package queue

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// memoryClient is c_ and mq_c_ in one.
type memoryClient struct {
	user, server        string
	secret              SecretHash // of a client without a user
	instance            string     // of the client, and the attempt that bound it
	attempt             int64
	generation, since   int64 // since in Unix ms, 0 when never bound
	messages            []Message
	last, acked, floor  int64
	lost                int64     // the last lost id that a marker tells of
	firsts              []firstOf // ascending
	withdrawn           []int64
	expires, forgetting int64 // of the messages, and of the record; Unix ms
}

func (c *memoryClient) expire(now int64) int64 {
	if now >= c.expires && len(c.messages) > 0 {
		c.messages, c.floor = nil, c.last
	}
	switch {
	case len(c.messages) > 0:
		return c.expires
	case now < c.forgetting:
		return c.forgetting
	}
	return 0
}

// keep renews the record, for no less than the messages live.
func (c *memoryClient) keep(until int64) {
	if len(c.messages) > 0 {
		until = max(until, c.expires)
	}
	c.forgetting = until
}

// clientLocked is the record of a client, a new one when it is not known.
func (m *Memory) clientLocked(client string, now int64) (c *memoryClient, known bool) {
	if c, known = m.clients.get(client, now); known {
		return c, true
	}
	return &memoryClient{}, false
}

// fencedLocked is the record of a client whose current generation is the given one, else ErrStale or
// ErrForgotten.
func (m *Memory) fencedLocked(client string, generation, now int64) (*memoryClient, error) {
	c, known := m.clients.get(client, now)
	switch {
	case !known || c.generation < generation:
		return nil, ErrForgotten
	case c.generation > generation:
		return nil, ErrStale
	}
	return c, nil
}

// bind is BindClients for one claim.
func (m *Memory) bind(_ context.Context, claim Claim) (Bound, error) {
	client, user := claim.Client, claim.User
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.nowLocked()
	c, _ := m.clientLocked(client, now)
	bound := c.generation > 0 // else a push came first, and the record is of no one yet
	if bound && user == "" && (c.user != "" || c.secret != claim.Secret) {
		return Bound{}, fmt.Errorf("bind client %s: %w", client, ErrSecret)
	}
	if claim.Instance != "" && c.instance == claim.Instance && c.attempt > claim.Attempt {
		return Bound{}, fmt.Errorf("bind client %s: %w", client, ErrStale)
	}
	if bound && c.user != user {
		c.acked, c.floor, c.firsts, c.withdrawn, c.messages = c.last, 0, nil, nil, nil
	}
	b := Bound{
		Generation: nextID(now, c.generation), PrevServer: c.server,
		PrevGeneration: c.generation, Acked: c.acked, Queued: len(c.messages), Last: c.last,
		WithdrawalDue: len(c.firsts) > 0 && c.firsts[0].id <= c.acked,
	}
	c.user, c.server, c.generation, c.since = user, claim.Server, b.Generation, now
	c.instance, c.attempt, c.secret = claim.Instance, claim.Attempt, claim.Secret
	c.keep(now + millis(m.opts.RecordTTL))
	m.clients.put(client, c, now)
	return b, nil
}

// BindClients is like [Redis.BindClients].
func (m *Memory) BindClients(ctx context.Context, claims []Claim) []Outcome[Bound] {
	return each(ctx, claims, m.bind)
}

// refresh is RefreshClients for one client.
func (m *Memory) refresh(server string, held HeldClient) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.nowLocked()
	c, _ := m.clientLocked(held.Client, now)
	if c.generation > held.Generation {
		return fmt.Errorf("refresh client %s: %w", held.Client, ErrStale)
	}
	if c.generation != held.Generation {
		c.user, c.secret, c.generation, c.since = held.User, held.Secret, held.Generation, now
	}
	c.server = server
	c.keep(now + millis(m.opts.RecordTTL))
	m.clients.put(held.Client, c, now)
	return nil
}

// RefreshClients is like [Redis.RefreshClients].
func (m *Memory) RefreshClients(_ context.Context, server string, list []HeldClient) []error {
	errs := make([]error, len(list))
	for i, h := range list {
		errs[i] = m.refresh(server, h)
	}
	return errs
}

// Unbind is like [Redis.Unbind].
func (m *Memory) Unbind(_ context.Context, client string, generation int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, err := m.fencedLocked(client, generation, m.nowLocked())
	if err != nil {
		return fmt.Errorf("unbind client %s: %w", client, err)
	}
	c.server = ""
	return nil
}

// Release is like [Redis.Release].
func (m *Memory) Release(_ context.Context, client, server string) (user string, generation int64, released bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, known := m.clients.get(client, m.nowLocked())
	if !known || c.server != server {
		return "", 0, false, nil
	}
	c.server = ""
	return c.user, c.generation, true, nil
}

// Client is like [Redis.Client].
func (m *Memory) Client(_ context.Context, client string) (Client, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, known := m.clients.get(client, m.nowLocked())
	if !known {
		return Client{}, false, nil
	}
	out := Client{User: c.user, Server: c.server, Generation: c.generation, Queued: len(c.messages), Last: c.last, Acked: c.acked}
	if c.since > 0 {
		out.Since = time.UnixMilli(c.since)
	}
	return out, true, nil
}

// AppendClient is like [Redis.AppendClient].
func (m *Memory) AppendClient(_ context.Context, push ClientPush) (ClientAppended, error) {
	if push.Durable {
		return ClientAppended{}, fmt.Errorf("append to client %s: %w", push.Client, ErrNoReplicas)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.nowLocked()
	c, _ := m.clientLocked(push.Client, now)
	if push.User != "" && c.user != push.User {
		return ClientAppended{}, fmt.Errorf("append to client %s: %w", push.Client, ErrUnknownClient)
	}
	a := ClientAppended{Server: c.server, Generation: c.generation}
	key := push.Key
	if key != "" {
		key = keys{}.clientKey(push.Client, key)
		if a.ID, a.Duplicate = m.duplicateLocked(key, now); a.Duplicate {
			if push.AckGroup != "" && a.ID <= c.acked {
				// Acknowledged, and the push is repeated, for it has not reached all: those that it reaches now are
				// withdrawn by the next acknowledgement or bind.
				m.joinLocked(push.Client, c, push.AckGroup, a.ID, now)
			}
			return a, nil
		}
	}
	a.ID, a.Prev = nextID(now, c.last), c.last
	expires := now + millis(cmp.Or(push.TTL, m.opts.ClientTTL))
	if len(c.messages) > 0 {
		expires = max(expires, c.expires)
	}
	c.messages = append(c.messages, Message{ID: a.ID, Data: bytes.Clone(push.Data)})
	c.last, c.expires = a.ID, expires
	if surplus := len(c.messages) - m.opts.ClientCap; surplus > 0 {
		c.floor = c.messages[surplus-1].ID
		c.messages = dropHead(c.messages, surplus)
	}
	c.keep(now + millis(m.opts.RecordTTL))
	m.clients.put(push.Client, c, now)
	if push.AckGroup != "" {
		m.joinLocked(push.Client, c, push.AckGroup, a.ID, now)
	}
	if key != "" {
		m.rememberLocked(key, a.ID, now)
	}
	return a, nil
}

// AppendClients is like [Redis.AppendClients].
func (m *Memory) AppendClients(ctx context.Context, pushes []ClientPush) []Outcome[ClientAppended] {
	return each(ctx, pushes, m.AppendClient)
}

// Window is like [Redis.Window].
func (m *Memory) Window(_ context.Context, client string, generation, after int64, limit int) (Page, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, err := m.fencedLocked(client, generation, m.nowLocked())
	if err != nil {
		return Page{}, fmt.Errorf("window of client %s: %w", client, err)
	}
	p := Page{Floor: c.floor, Last: c.last, Complete: after >= c.floor}
	window := c.messages[:min(len(c.messages), MaxWindow)]
	p.Messages, p.More = page(behind(window, after), limit, MaxPageBytes)
	p.More = p.More || len(c.messages) > len(window)
	return p, nil
}

// Ack is like [Redis.Ack].
func (m *Memory) Ack(_ context.Context, client string, generation, id int64) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.nowLocked()
	c, err := m.fencedLocked(client, generation, now)
	if err != nil {
		return 0, fmt.Errorf("acknowledge %d of client %s: %w", id, client, err)
	}
	id = min(id, c.last) // an id from the future would hide messages that are yet to come
	// Nobody has received what the cap dropped, or what expired, before it was acknowledged.
	c.firsts = slices.DeleteFunc(c.firsts, func(f firstOf) bool { return f.id > c.acked && f.id <= c.floor })
	n := len(c.messages) - len(behind(c.messages, id))
	c.messages = dropHead(c.messages, n)
	if c.acked = max(c.acked, id); n > 0 && len(c.messages) == 0 {
		c.acked = c.last // what is missing behind it was withdrawn
	}
	if len(c.firsts) > 0 || len(c.withdrawn) > 0 {
		m.ackedFirstLocked(client, c, id, now)
	}
	return n, nil
}

// Acks is like [Redis.Acks].
func (m *Memory) Acks(ctx context.Context, acks []Ack) []Outcome[int] {
	return each(ctx, acks, func(ctx context.Context, a Ack) (int, error) { return m.Ack(ctx, a.Client, a.Generation, a.ID) })
}
