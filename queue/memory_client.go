package queue

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// memoryClient is a client: c_, mq_c_ and mq_f_.
type memoryClient struct {
	user, server       string
	secret             SecretHash // of a client without a user
	instance           string     // of the last bind
	attempt            int64      // of the last bind
	generation, since  int64      // since in Unix ms, 0 if never bound
	messages           []Message
	last, acked, floor int64
	lost               int64       // the highest lost id that a marker reports
	grouped            []groupedID // by id, of messages that are not acknowledged
	withdrawn          []int64     // ids above acked
	expires            int64       // of the messages, Unix ms
	recordExpires      int64       // Unix ms
}

func (c *memoryClient) expire(now int64) int64 {
	if now >= c.expires && len(c.messages) > 0 {
		c.messages, c.floor = nil, c.last
	}
	switch {
	case len(c.messages) > 0:
		return c.expires
	case now < c.recordExpires:
		return c.recordExpires
	}
	return 0
}

// renew extends the record until the given time, or until the messages expire if that is later.
func (c *memoryClient) renew(until int64) {
	if len(c.messages) > 0 {
		until = max(until, c.expires)
	}
	c.recordExpires = until
}

// clientLocked returns the record of a client, or a new record if the client is unknown.
func (m *Memory) clientLocked(client string, now int64) (c *memoryClient, known bool) {
	if c, known = m.clients.get(client, now); known {
		return c, true
	}
	return &memoryClient{}, false
}

// fencedLocked returns the record of a client if its current generation is the given one, else
// ErrStale or ErrForgotten.
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

// bind is BindClients for one claim. A claim without a time is not late: it is executed at once.
func (m *Memory) bind(_ context.Context, claim Claim) (Bound, error) {
	client, user := claim.Client, claim.User
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.sweepLocked()
	c, _ := m.clientLocked(client, now)
	bound := c.generation > 0 // false if the record is new, or was made by a push
	if bound && user == "" && (c.user != "" || c.secret != claim.Secret) {
		return Bound{}, fmt.Errorf("bind client %s: %w", client, ErrSecret)
	}
	if claim.Instance != "" && c.instance == claim.Instance && c.attempt > claim.Attempt {
		return Bound{}, fmt.Errorf("bind client %s: %w", client, ErrStale)
	}
	if boundAt := TimeOf(c.generation).UnixMilli(); claim.Asked > 0 &&
		(now-claim.Asked > MaxBindDelay.Milliseconds() || bound && boundAt > claim.Asked) {
		return Bound{Asked: max(now, boundAt)}, fmt.Errorf("bind client %s: %w", client, ErrLate)
	}
	if bound && c.user != user {
		c.acked, c.floor, c.grouped, c.withdrawn, c.messages = c.last, 0, nil, nil, nil
	}
	b := Bound{
		Generation: nextID(now, c.generation), PrevServer: c.server,
		PrevGeneration: c.generation, Acked: c.acked, Queued: len(c.messages), Last: c.last,
		WithdrawalDue: len(c.grouped) > 0 && c.grouped[0].id <= c.acked,
		Subscribed:    user == "", // a queue in memory does not know
	}
	c.user, c.server, c.generation, c.since = user, claim.Server, b.Generation, now
	c.instance, c.attempt, c.secret = claim.Instance, claim.Attempt, claim.Secret
	c.renew(now + millis(m.opts.RecordTTL))
	m.clients.put(client, c, now)
	return b, nil
}

// BindClients is like [Redis.BindClients].
func (m *Memory) BindClients(ctx context.Context, claims []Claim) []Outcome[Bound] {
	return forEach(ctx, claims, m.bind)
}

// refresh is RefreshClients for one client.
func (m *Memory) refresh(server string, held HeldClient) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.sweepLocked()
	c, _ := m.clientLocked(held.Client, now)
	if c.generation > held.Generation {
		return fmt.Errorf("refresh client %s: %w", held.Client, ErrStale)
	}
	if c.generation != held.Generation {
		c.user, c.secret, c.generation, c.since = held.User, held.Secret, held.Generation, now
	}
	c.server = server
	c.renew(now + millis(m.opts.RecordTTL))
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
	c, err := m.fencedLocked(client, generation, m.sweepLocked())
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
	c, known := m.clients.get(client, m.sweepLocked())
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
	c, known := m.clients.get(client, m.sweepLocked())
	if !known {
		return Client{}, false, nil
	}
	out := Client{User: c.user, Server: c.server, Generation: c.generation, Queued: len(c.messages), Last: c.last, Acked: c.acked, Secret: c.secret}
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
	now := m.sweepLocked()
	c, _ := m.clientLocked(push.Client, now)
	if push.User != "" && c.user != push.User {
		return ClientAppended{}, fmt.Errorf("append to client %s: %w", push.Client, ErrUnknownClient)
	}
	a := ClientAppended{Server: c.server, Generation: c.generation}
	key := push.Key
	if key != "" {
		key = keys{}.clientKey(push.Client, key)
		if a.ID, a.Duplicate = m.keyLocked(key, now); a.Duplicate {
			if push.AckGroup != "" && a.ID <= c.acked {
				// The client has acknowledged, and the push is repeated because it failed for other
				// clients. The next acknowledgement or bind withdraws the new copies.
				m.addToGroupLocked(push.Client, c, push.AckGroup, a.ID, now)
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
	c.renew(now + millis(m.opts.RecordTTL))
	m.clients.put(push.Client, c, now)
	if push.AckGroup != "" {
		m.addToGroupLocked(push.Client, c, push.AckGroup, a.ID, now)
	}
	if key != "" {
		m.putKeyLocked(key, &keyEntry{id: a.ID}, now)
	}
	return a, nil
}

// AppendClients is like [Redis.AppendClients].
func (m *Memory) AppendClients(ctx context.Context, pushes []ClientPush) []Outcome[ClientAppended] {
	return forEach(ctx, pushes, m.AppendClient)
}

// Window is like [Redis.Window].
func (m *Memory) Window(ctx context.Context, client string, generation, after int64, limit int) (Page, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, err := m.fencedLocked(client, generation, m.sweepLocked())
	if err != nil {
		return Page{}, fmt.Errorf("window of client %s: %w", client, err)
	}
	return c.page(ctx, after, limit, MaxWindow, MaxWindowBytes), nil
}

// ReadClient is like [Redis.ReadClient].
func (m *Memory) ReadClient(ctx context.Context, client string, after int64, limit int) (Page, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, known := m.clients.get(client, m.sweepLocked())
	if !known {
		return Page{}, fmt.Errorf("read the queue of client %s: %w", client, ErrForgotten)
	}
	return c.page(ctx, after, limit, maxRead, MaxPageBytes), nil
}

// page returns the messages after an id, up to limit, out of the first messages of the list.
func (c *memoryClient) page(ctx context.Context, after int64, limit, first, bytes int) Page {
	p := Page{Floor: c.floor, Last: c.last, Complete: after >= c.floor}
	window := c.messages[:min(len(c.messages), first)]
	p.Messages, p.More = firstPage(above(window, after), limit, bytes)
	p.More = p.More || len(c.messages) > len(window)
	p.count(ctx)
	return p
}

// Ack is like [Redis.Ack].
func (m *Memory) Ack(_ context.Context, client string, generation, id int64) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.sweepLocked()
	c, err := m.fencedLocked(client, generation, now)
	if err != nil {
		return 0, fmt.Errorf("acknowledge %d of client %s: %w", id, client, err)
	}
	id = min(id, c.last) // a higher id would hide messages that come later
	// The client has not received messages that the cap or the TTL dropped: their groups have no
	// effect.
	c.grouped = slices.DeleteFunc(c.grouped, func(g groupedID) bool { return g.id > c.acked && g.id <= c.floor })
	n := len(c.messages) - len(above(c.messages, id))
	c.messages = dropHead(c.messages, n)
	if c.acked = max(c.acked, id); n > 0 && len(c.messages) == 0 {
		c.acked = c.last // the messages above id were withdrawn
	}
	if len(c.grouped) > 0 || len(c.withdrawn) > 0 {
		m.withdrawGroupsLocked(client, c, id, now)
	}
	return n, nil
}

// Acks is like [Redis.Acks].
func (m *Memory) Acks(ctx context.Context, acks []Ack) []Outcome[int] {
	return forEach(ctx, acks, func(ctx context.Context, a Ack) (int, error) { return m.Ack(ctx, a.Client, a.Generation, a.ID) })
}
