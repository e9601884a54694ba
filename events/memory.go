package events

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"
)

// epochMS is 2020-01-01 UTC, where places begin, in Unix milliseconds. The scripts spell it out.
const epochMS = 1577836800000

// placesPerMS is how many places fit in a millisecond.
const placesPerMS = 4096

var _ Store = (*Memory)(nil)

// Memory is the [Store] of a broker that runs alone. Nothing outlives the process.
type Memory struct {
	now    func() time.Time
	bounds bounds

	mu     sync.Mutex // guards the field below
	shards [Shards]memoryShard
}

// memoryShard is what Redis has under the keys of one shard.
type memoryShard struct {
	due        map[string]appointment
	told       map[string]bool
	watched    map[string][]byte
	watchBytes int

	out       []Queued
	outBytes  int
	dead      []DeadLetter
	deadBytes int

	claims   int64 // ever made
	last     int64 // place
	fence    int64 // leases ever given
	attempts int
	leased   int64 // until when, Unix ms
	retry    int64 // not before, Unix ms
}

// appointment is when to look at an entry, in Unix ms, and by which claim, if any.
type appointment struct{ at, claim int64 }

// NewMemory returns an empty store. opts have passed [StoreOptions.Validate].
func NewMemory(opts StoreOptions) *Memory {
	m := &Memory{now: opts.Now, bounds: defaultBounds}
	if m.now == nil {
		m.now = time.Now
	}
	for i := range m.shards {
		m.shards[i] = memoryShard{due: map[string]appointment{}, told: map[string]bool{}, watched: map[string][]byte{}}
	}
	return m
}

// lock gives the shard and the time in Unix ms.
func (m *Memory) lock(shard int) (s *memoryShard, now int64, unlock func()) {
	m.mu.Lock()
	return &m.shards[shard], m.now().UnixMilli(), m.mu.Unlock
}

// Changed implements [Store].
func (m *Memory) Changed(_ context.Context, grace time.Duration, changes ...Change) []error {
	errs := make([]error, len(changes))
	for i, c := range changes {
		errs[i] = m.changed(c.Shard, c.Entry, grace)
	}
	return errs
}

func (m *Memory) changed(shard int, entry string, grace time.Duration) error {
	s, at, unlock := m.lock(shard)
	defer unlock()
	if s.told[entry] {
		at += grace.Milliseconds()
	}
	if _, known := s.due[entry]; !known && len(s.due) >= m.bounds.due {
		return fmt.Errorf("note %s: %w", entry, ErrFull)
	}
	s.due[entry] = appointment{at: at}
	return nil
}

// Watch implements [Store].
func (m *Memory) Watch(_ context.Context, shard int, entry string, record []byte, after time.Duration) error {
	s, now, unlock := m.lock(shard)
	defer unlock()
	if _, watched := s.watched[entry]; watched {
		return nil
	}
	if len(s.due) >= m.bounds.due || s.watchBytes+len(record) > m.bounds.watchBytes {
		return fmt.Errorf("note %s: %w", entry, ErrFull)
	}
	s.watched[entry] = slices.Clone(record)
	s.watchBytes += len(record)
	s.due[entry] = appointment{at: now + after.Milliseconds()}
	return nil
}

// Claim implements [Store].
func (m *Memory) Claim(_ context.Context, shard, n int, hold time.Duration) ([]Claim, error) {
	s, now, unlock := m.lock(shard)
	defer unlock()
	var entries []string
	for entry, a := range s.due {
		if a.at <= now {
			entries = append(entries, entry)
		}
	}
	slices.SortFunc(entries, func(a, b string) int {
		return cmp.Or(cmp.Compare(s.due[a].at, s.due[b].at), cmp.Compare(a, b))
	})
	var claims []Claim
	for _, entry := range entries[:min(n, len(entries))] {
		s.claims++
		s.due[entry] = appointment{at: now + max(hold.Milliseconds(), 1), claim: s.claims}
		claims = append(claims, Claim{Entry: entry, Token: decimal(s.claims), Record: s.watched[entry]})
	}
	return claims, nil
}

// Settle implements [Store].
func (m *Memory) Settle(_ context.Context, shard int, v Verdict) (Settled, error) {
	s, now, unlock := m.lock(shard)
	defer unlock()
	if a := s.due[v.Entry]; a.claim == 0 || decimal(a.claim) != v.Token {
		return Settled{}, nil
	}
	delete(s.due, v.Entry)
	if record, watched := s.watched[v.Entry]; watched {
		s.watchBytes -= len(record)
		delete(s.watched, v.Entry)
	} else if v.Entry[:2] != watchSort {
		if s.told[v.Entry] == v.Present {
			return Settled{Valid: true}, nil
		}
		if s.told[v.Entry] = v.Present; !v.Present {
			delete(s.told, v.Entry)
		}
	}
	if v.Event == nil {
		return Settled{Valid: true}, nil
	}
	place := s.place(now)
	id := cmp.Or(v.ID, fmt.Sprintf("%d-%d", place, shard))
	s.push(Queued{place, slices.Concat(fmt.Appendf(nil, `{"id":"%s","at":%d,`, id, now), v.Event)})
	done := Settled{Valid: true, Told: true}
	for len(s.out) > 1 && (len(s.out) > m.bounds.out || s.outBytes > m.bounds.outBytes) {
		m.bury(s, Full, now)
		done.GivenUp++
	}
	return done, nil
}

// place is the next one.
func (s *memoryShard) place(now int64) int64 {
	s.last = max((now-epochMS)*placesPerMS, s.last+1)
	return s.last
}

// Told implements [Store]. The cursor is the last entry of the page before.
func (m *Memory) Told(_ context.Context, shard int, cursor string, n int) (entries []string, next string, err error) {
	s, _, unlock := m.lock(shard)
	defer unlock()
	for entry := range s.told {
		if entry > cursor {
			entries = append(entries, entry)
		}
	}
	slices.Sort(entries)
	if len(entries) > n {
		return entries[:n], entries[n-1], nil
	}
	return entries, "", nil
}

// push appends to the list.
func (s *memoryShard) push(q Queued) {
	s.out = append(s.out, q)
	s.outBytes += q.size()
}

// size is what Redis holds of it.
func (q Queued) size() int { return len(strconv.FormatInt(q.Place, 10)) + 1 + len(q.Event) }

func (l DeadLetter) size() int { return len(l.Reason) + 15 + len(l.Event) }

// pop removes the head of the list.
func (s *memoryShard) pop() Queued {
	q := s.out[0]
	s.out[0] = Queued{}
	s.out = s.out[1:]
	s.outBytes -= q.size()
	return q
}

// bury moves the head of the list to the dead letters.
func (m *Memory) bury(s *memoryShard, why Reason, now int64) {
	letter := DeadLetter{Reason: why, At: time.UnixMilli(now), Event: s.pop().Event}
	s.dead = append(s.dead, letter)
	s.deadBytes += letter.size()
	for len(s.dead) > 1 && (len(s.dead) > m.bounds.dead || s.deadBytes > m.bounds.deadBytes) {
		s.unbury()
	}
}

// unbury removes the oldest dead letter.
func (s *memoryShard) unbury() DeadLetter {
	letter := s.dead[0]
	s.dead[0] = DeadLetter{}
	s.dead = s.dead[1:]
	s.deadBytes -= letter.size()
	return letter
}
