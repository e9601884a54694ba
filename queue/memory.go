package queue

import (
	"context"
	"slices"
	"sort"
	"sync"
	"time"
)

// Memory is the queue of a broker that runs alone. It behaves like [Redis], and nothing outlives the
// process. Its methods are safe for concurrent use.
type Memory struct {
	opts   Options
	owners func(channel string) []string

	mu       sync.Mutex // guards the fields below
	channels table[*memoryChannel]
	clients  table[*memoryClient]
	groups   table[*memoryGroup]
	seen     table[*seenKey]        // by the name that the idempotency key has in Redis
	requests table[*memoryRequests] // by N
}

// NewMemory returns empty queues. opts must be valid; owners says who holds subscribers
// of a channel, and may be nil.
func NewMemory(opts Options, owners func(channel string) []string) *Memory {
	return &Memory{
		opts:     opts.withDefaults(),
		owners:   owners,
		channels: newTable[*memoryChannel](),
		clients:  newTable[*memoryClient](),
		groups:   newTable[*memoryGroup](),
		seen:     newTable[*seenKey](),
		requests: newTable[*memoryRequests](),
	}
}

// each makes one call after the other.
func each[P, T any](ctx context.Context, pushes []P, one func(context.Context, P) (T, error)) []Outcome[T] {
	out := make([]Outcome[T], len(pushes))
	for i, push := range pushes {
		out[i].Value, out[i].Err = one(ctx, push)
	}
	return out
}

// nowLocked is the time in Unix milliseconds. Every call asks for it once, and thereby
// does its share of the sweeping.
func (m *Memory) nowLocked() int64 {
	now := m.opts.Now().UnixMilli()
	m.channels.sweep(now)
	m.clients.sweep(now)
	m.groups.sweep(now)
	m.seen.sweep(now)
	m.requests.sweep(now)
	return now
}

// seenKey is the id that was stored under an idempotency key.
type seenKey struct{ id, expires int64 }

func (s *seenKey) expire(now int64) int64 {
	if now >= s.expires {
		return 0
	}
	return s.expires
}

// duplicateLocked looks up an idempotency key.
func (m *Memory) duplicateLocked(key string, now int64) (id int64, found bool) {
	s, found := m.seen.get(key, now)
	if !found {
		return 0, false
	}
	return s.id, true
}

func (m *Memory) rememberLocked(key string, id, now int64) {
	m.seen.put(key, &seenKey{id: id, expires: now + millis(m.opts.KeyTTL)}, now)
}

// behind is the part of messages, which are in order, with ids above after.
func behind(messages []Message, after int64) []Message {
	return messages[sort.Search(len(messages), func(i int) bool { return messages[i].ID > after }):]
}

// page copies what fits a page from the head of messages.
func page(messages []Message, limit, room int) (taken []Message, more bool) {
	bytes := 0
	for i, m := range messages {
		bytes += memberSize(m)
		if i == limit || i > 0 && bytes > room {
			return slices.Clone(messages[:i]), true
		}
	}
	return slices.Clone(messages), false
}

// dropHead removes n messages and lets their payloads go.
func dropHead(messages []Message, n int) []Message {
	clear(messages[:n])
	if n == len(messages) {
		return nil
	}
	return messages[n:]
}

// tooOld says whether an id was given out more than maxAge ago.
func tooOld(id, now int64, maxAge time.Duration) bool {
	return now-epochMS-id/idsPerMS > maxAge.Milliseconds()
}
