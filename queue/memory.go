package queue

import (
	"context"
	"slices"
	"sort"
	"sync"
	"time"

	"switchboard/internal/meter"
)

// Memory is the queue of a broker that runs alone. It behaves like [Redis], and nothing outlives
// the process. Its methods are safe for concurrent use.
type Memory struct {
	opts    Options
	servers func(channel string) []string // with subscribers; may be nil

	mu       sync.Mutex // guards the fields below
	channels table[*memoryChannel]
	clients  table[*memoryClient]
	groups   table[*ackGroup]       // by name
	pushed   table[*keyEntry]       // by idempotency key, in the form of its key in Redis
	requests table[*memoryRequests] // by list
}

// NewMemory returns empty queues. opts must be valid. servers returns the servers with subscribers
// of a channel, and may be nil.
func NewMemory(opts Options, servers func(channel string) []string) *Memory {
	return &Memory{
		opts:     opts.withDefaults(),
		servers:  servers,
		channels: newTable[*memoryChannel](),
		clients:  newTable[*memoryClient](),
		groups:   newTable[*ackGroup](),
		pushed:   newTable[*keyEntry](),
		requests: newTable[*memoryRequests](),
	}
}

// forEach calls one for each item of a batch, in order.
func forEach[P, T any](ctx context.Context, items []P, one func(context.Context, P) (T, error)) []Outcome[T] {
	out := make([]Outcome[T], len(items))
	for i, item := range items {
		out[i].Value, out[i].Err = one(ctx, item)
	}
	return out
}

// sweepLocked removes some expired entries and returns the time in Unix milliseconds. Every call of
// the store begins with it.
func (m *Memory) sweepLocked() int64 {
	now := m.opts.Now().UnixMilli()
	m.channels.sweep(now)
	m.clients.sweep(now)
	m.groups.sweep(now)
	m.pushed.sweep(now)
	m.requests.sweep(now)
	return now
}

// keyEntry is the result of the push with an idempotency key.
type keyEntry struct {
	id      int64
	numbers map[string]int64 // see Appended
	reply   string           // see Appended
	expires int64
}

func (e *keyEntry) expire(now int64) int64 {
	if now >= e.expires {
		return 0
	}
	return e.expires
}

// keyLocked returns the id stored for an idempotency key.
func (m *Memory) keyLocked(key string, now int64) (id int64, found bool) {
	e, found := m.pushed.get(key, now)
	if !found {
		return 0, false
	}
	return e.id, true
}

func (m *Memory) putKeyLocked(key string, e *keyEntry, now int64) {
	e.expires = now + millis(m.opts.KeyTTL)
	m.pushed.put(key, e, now)
}

// above returns the messages with ids above after. messages are in order.
func above(messages []Message, after int64) []Message {
	return messages[sort.Search(len(messages), func(i int) bool { return messages[i].ID > after }):]
}

// firstPage returns a copy of the first messages, up to limit and maxBytes, but at least one
// message if limit is not 0. more reports whether messages are left.
func firstPage(messages []Message, limit, maxBytes int) (taken []Message, more bool) {
	bytes := 0
	for i, m := range messages {
		bytes += memberSize(m)
		if i == limit || i > 0 && bytes > maxBytes {
			return slices.Clone(messages[:i]), true
		}
	}
	return slices.Clone(messages), false
}

// dropHead removes the first n messages and releases their payloads.
func dropHead(messages []Message, n int) []Message {
	clear(messages[:n])
	if n == len(messages) {
		return nil
	}
	return messages[n:]
}

// tooOld reports whether an id was assigned more than maxAge ago.
func tooOld(id, now int64, maxAge time.Duration) bool {
	return now-epochMS-id/idsPerMS > maxAge.Milliseconds()
}

// recordBytes is about how many bytes Redis sends for a message or a field besides its text.
const recordBytes = 32

// count counts the page in the Meter of ctx, like the reply of Redis.
func (p *Page) count(ctx context.Context) {
	m := meter.Of(ctx)
	for i := 0; m != nil && i < len(p.Messages); i++ {
		m.Add(len(p.Messages[i].Data) + recordBytes)
	}
}

// count counts the page in the Meter of ctx, like the reply of Redis.
func (p *StatePage) count(ctx context.Context) {
	m := meter.Of(ctx)
	for i := 0; m != nil && i < len(p.Fields); i++ {
		m.Add(len(p.Fields[i].Name) + len(p.Fields[i].Value) + recordBytes)
	}
	m.Add(p.Expired * recordBytes)
}
