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

// epochMS is 2020-01-01 UTC in Unix milliseconds. Sequence numbers count from it. The Lua scripts
// contain the number.
const epochMS = 1577836800000

// seqsPerMS is the number of sequence numbers in a millisecond. The Lua scripts contain it too.
const seqsPerMS = 4096

// timeOf returns the time of a sequence number: that of its event or a little later. 0 has none.
func timeOf(seq int64) time.Time {
	if seq == 0 {
		return time.Time{}
	}
	return time.UnixMilli(epochMS + seq/seqsPerMS)
}

var _ Store = (*Memory)(nil)

// Memory is a [Store] for a broker that runs alone. Its contents end with the process.
type Memory struct {
	now    func() time.Time
	limits limits

	mu     sync.Mutex // guards the field below
	shards [Shards]memoryShard
}

// memoryShard holds the same data as the keys of one shard in Redis.
type memoryShard struct {
	due         map[string]dueEntry
	reported    map[string]bool   // the entries last reported present
	records     map[string][]byte // of messages with a deadline
	recordBytes int
	fields      map[string]Tracked // by entry

	outbox          []QueuedEvent
	outboxBytes     int
	deadLetters     []DeadLetter
	deadLetterBytes int
	dropped         int64 // dead letters for which there was no room

	lastClaim  int64 // number of the last claim
	lastSeq    int64 // sequence number of the last event
	fence      int64 // fencing token of the last lease
	attempts   int   // failed attempts since the last successful one
	leaseUntil int64 // Unix ms
	retryAt    int64 // Unix ms
	answer     Answer
}

// dueEntry is the time of a check in Unix ms and the number of the claim; 0 means not claimed.
type dueEntry struct{ at, claim int64 }

// NewMemory returns an empty store. The options must be valid: call [StoreOptions.Validate] first.
func NewMemory(opts StoreOptions) *Memory {
	m := &Memory{now: opts.Now, limits: defaultLimits}
	if m.now == nil {
		m.now = time.Now
	}
	for i := range m.shards {
		m.shards[i] = memoryShard{due: map[string]dueEntry{}, reported: map[string]bool{}, records: map[string][]byte{}, fields: map[string]Tracked{}}
	}
	return m
}

// lock locks the store and returns the shard and the time in Unix ms.
func (m *Memory) lock(shard int) (s *memoryShard, now int64, unlock func()) {
	m.mu.Lock()
	return &m.shards[shard], m.now().UnixMilli(), m.mu.Unlock
}

// Schedule implements [Store].
func (m *Memory) Schedule(_ context.Context, grace time.Duration, checks ...Check) []error {
	errs := make([]error, len(checks))
	for i, c := range checks {
		errs[i] = m.schedule(c, grace)
	}
	return errs
}

func (m *Memory) schedule(c Check, grace time.Duration) error {
	s, at, unlock := m.lock(c.Shard)
	defer unlock()
	if s.reported[c.Entry] {
		at += grace.Milliseconds()
	}
	if _, scheduled := s.due[c.Entry]; !scheduled && len(s.due) >= m.limits.due {
		return scheduleError(c.Entry, 0, nil)
	}
	s.due[c.Entry] = dueEntry{at: at}
	return nil
}

// SetDeadline implements [Store].
func (m *Memory) SetDeadline(_ context.Context, shard int, entry string, record []byte, in time.Duration) error {
	s, now, unlock := m.lock(shard)
	defer unlock()
	if _, found := s.records[entry]; found {
		return nil
	}
	if len(s.due) >= m.limits.due || s.recordBytes+len(record) > m.limits.deadlineBytes {
		return scheduleError(entry, 0, nil)
	}
	s.records[entry] = slices.Clone(record)
	s.recordBytes += len(record)
	s.due[entry] = dueEntry{at: now + in.Milliseconds()}
	return nil
}

// Claim implements [Store].
func (m *Memory) Claim(_ context.Context, shard, n int, ttl time.Duration) ([]Claim, error) {
	s, now, unlock := m.lock(shard)
	defer unlock()
	var entries []string
	for entry, d := range s.due {
		if d.at <= now {
			entries = append(entries, entry)
		}
	}
	slices.SortFunc(entries, func(a, b string) int {
		return cmp.Or(cmp.Compare(s.due[a].at, s.due[b].at), cmp.Compare(a, b))
	})
	var claims []Claim
	for _, entry := range entries[:min(n, len(entries))] {
		s.lastClaim++
		s.due[entry] = dueEntry{at: now + max(ttl.Milliseconds(), 1), claim: s.lastClaim}
		claim := Claim{Entry: entry, Token: decimal(s.lastClaim), Record: s.records[entry]}
		if tracked, found := s.fields[entry]; found {
			claim.Record = []byte(tracked.String())
		}
		claims = append(claims, claim)
	}
	return claims, nil
}

// Settle implements [Store].
func (m *Memory) Settle(_ context.Context, shard int, r CheckResult) (Settled, error) {
	s, now, unlock := m.lock(shard)
	defer unlock()
	if d := s.due[r.Entry]; d.claim == 0 || decimal(d.claim) != r.Token {
		return Settled{}, nil
	}
	delete(s.due, r.Entry)
	if record, found := s.records[r.Entry]; found {
		s.recordBytes -= len(record)
		delete(s.records, r.Entry)
	} else if r.Entry[:2] != deadlinePrefix {
		if s.reported[r.Entry] == r.Present {
			return Settled{Valid: true}, nil
		}
		if s.reported[r.Entry] = r.Present; !r.Present {
			delete(s.reported, r.Entry)
		}
	}
	if r.Event == nil {
		return Settled{Valid: true}, nil
	}
	return Settled{Valid: true, Created: true, DeadLettered: m.appendEvent(s, shard, now, r.ID, r.Event)}, nil
}

// appendEvent appends an event to the outbox, and returns how many older events became dead letters
// to make room. If id is empty, it chooses one.
func (m *Memory) appendEvent(s *memoryShard, shard int, now int64, id string, event []byte) (deadLettered int) {
	seq := s.nextSeq(now)
	id = cmp.Or(id, fmt.Sprintf("%d-%d", seq, shard))
	s.push(QueuedEvent{seq, slices.Concat(fmt.Appendf(nil, `{"id":"%s","at":%d,`, id, now), event)})
	for len(s.outbox) > 1 && (len(s.outbox) > m.limits.outbox || s.outboxBytes > m.limits.outboxBytes) {
		m.deadLetterHead(s, Full, now)
		deadLettered++
	}
	return deadLettered
}

// nextSeq returns the next sequence number.
func (s *memoryShard) nextSeq(now int64) int64 {
	s.lastSeq = max((now-epochMS)*seqsPerMS, s.lastSeq+1)
	return s.lastSeq
}

// ReportedPresent implements [Store]. The cursor is the last entry of the previous page.
func (m *Memory) ReportedPresent(_ context.Context, shard int, cursor string, n int) (entries []string, next string, err error) {
	s, _, unlock := m.lock(shard)
	defer unlock()
	for entry := range s.reported {
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

// push appends to the outbox.
func (s *memoryShard) push(q QueuedEvent) {
	s.outbox = append(s.outbox, q)
	s.outboxBytes += q.size()
}

// size returns the size of the element in Redis: <seq>:<event>.
func (q QueuedEvent) size() int { return len(strconv.FormatInt(q.Seq, 10)) + 1 + len(q.Event) }

// size returns the size of the element in Redis: <reason>:<Unix ms>:<event>. The time has 13
// digits.
func (l DeadLetter) size() int { return len(l.Reason) + len(":") + 13 + len(":") + len(l.Event) }

// pop removes and returns the head of the outbox.
func (s *memoryShard) pop() QueuedEvent {
	q := s.outbox[0]
	s.outbox[0] = QueuedEvent{}
	s.outbox = s.outbox[1:]
	s.outboxBytes -= q.size()
	return q
}

// deadLetterHead moves the head of the outbox to the dead letters.
func (m *Memory) deadLetterHead(s *memoryShard, why Reason, now int64) {
	letter := DeadLetter{Reason: why, At: time.UnixMilli(now), Event: s.pop().Event}
	s.deadLetters = append(s.deadLetters, letter)
	s.deadLetterBytes += letter.size()
	for len(s.deadLetters) > 1 && (len(s.deadLetters) > m.limits.deadLetters || s.deadLetterBytes > m.limits.deadLetterBytes) {
		s.popDeadLetter()
		s.dropped++
	}
}

// popDeadLetter removes and returns the oldest dead letter.
func (s *memoryShard) popDeadLetter() DeadLetter {
	letter := s.deadLetters[0]
	s.deadLetters[0] = DeadLetter{}
	s.deadLetters = s.deadLetters[1:]
	s.deadLetterBytes -= letter.size()
	return letter
}
