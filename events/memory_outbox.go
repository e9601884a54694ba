package events

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"
)

// Take implements [Store].
func (m *Memory) Take(_ context.Context, shard, n int, lease time.Duration) (Batch, error) {
	s, now, unlock := m.lock(shard)
	defer unlock()
	b := Batch{Shard: shard}
	if len(s.outbox) == 0 || s.leaseUntil > now || s.retryAt > now {
		return b, nil
	}
	room := maxBatchBytes
	for i, q := range s.outbox {
		if room -= q.size(); i == n || room < 0 && i > 0 {
			break
		}
		b.Events = append(b.Events, q)
	}
	s.fence++
	s.leaseUntil = now + lease.Milliseconds()
	b.Fence, b.Attempts = s.fence, s.attempts
	return b, nil
}

// endAttempt checks the fencing token of b, resets the failed attempts, and stores the answer. It
// renews the lease for the time renew, or ends it if renew is zero.
func (s *memoryShard) endAttempt(b Batch, now int64, renew time.Duration) error {
	if s.fence != b.Fence || b.Fence == 0 {
		return fenceError(b, -1, nil)
	}
	s.leaseUntil, s.attempts, s.retryAt = 0, 0, 0
	if b.Answer.text() != "" {
		s.answer = b.Answer
		s.answer.At = time.UnixMilli(now)
	}
	if renew > 0 {
		s.leaseUntil = now + renew.Milliseconds()
	}
	return nil
}

// Sent implements [Store].
func (m *Memory) Sent(_ context.Context, b Batch, upTo int64, renew time.Duration) error {
	s, now, unlock := m.lock(b.Shard)
	defer unlock()
	if err := s.endAttempt(b, now, renew); err != nil {
		return err
	}
	for len(s.outbox) > 0 && s.outbox[0].Seq <= upTo {
		s.pop()
	}
	return nil
}

// Failed implements [Store].
func (m *Memory) Failed(_ context.Context, b Batch, upTo int64, retryIn, maxAge time.Duration) (int, error) {
	s, now, unlock := m.lock(b.Shard)
	defer unlock()
	attempts := s.attempts
	if err := s.endAttempt(b, now, 0); err != nil {
		return 0, err
	}
	s.attempts, s.retryAt = attempts+1, now+retryIn.Milliseconds()
	upTo = min(upTo, (now-maxAge.Milliseconds()-epochMS)*seqsPerMS)
	return m.deadLetter(s, upTo, Expired, now), nil
}

// Refused implements [Store].
func (m *Memory) Refused(_ context.Context, b Batch, upTo int64, why Reason, renew time.Duration) error {
	s, now, unlock := m.lock(b.Shard)
	defer unlock()
	if err := s.endAttempt(b, now, renew); err != nil {
		return err
	}
	m.deadLetter(s, upTo, why, now)
	return nil
}

// deadLetter moves the events up to upTo to the dead letters and returns their number.
func (m *Memory) deadLetter(s *memoryShard, upTo int64, why Reason, now int64) (n int) {
	for len(s.outbox) > 0 && s.outbox[0].Seq <= upTo {
		m.deadLetterHead(s, why, now)
		n++
	}
	return n
}

// DeadLetters implements [Store].
func (m *Memory) DeadLetters(_ context.Context, shard, skip, n int) ([]DeadLetter, error) {
	s, _, unlock := m.lock(shard)
	defer unlock()
	skip = min(skip, len(s.deadLetters))
	return slices.Clone(s.deadLetters[skip:min(skip+n, len(s.deadLetters))]), nil
}

// Requeue implements [Store].
func (m *Memory) Requeue(_ context.Context, shard, n int) (moved int, err error) {
	s, now, unlock := m.lock(shard)
	defer unlock()
	for moved < n && len(s.deadLetters) > 0 && len(s.outbox) < m.limits.outbox {
		if len(s.outbox) > 0 && s.outboxBytes+s.deadLetters[0].size() > m.limits.outboxBytes {
			break
		}
		s.push(QueuedEvent{s.nextSeq(now), s.popDeadLetter().Event})
		moved++
	}
	return moved, nil
}

// Letter implements [Store].
func (m *Memory) Letter(_ context.Context, shard int, id string, retry bool) (bool, error) {
	s, now, unlock := m.lock(shard)
	defer unlock()
	start := fmt.Appendf(nil, `{"id":"%s",`, id)
	i := slices.IndexFunc(s.deadLetters, func(l DeadLetter) bool { return bytes.HasPrefix(l.Event, start) })
	if i < 0 {
		return false, nil
	}
	letter := s.deadLetters[i]
	if retry {
		if len(s.outbox) >= m.limits.outbox || len(s.outbox) > 0 && s.outboxBytes+letter.size() > m.limits.outboxBytes {
			return false, fmt.Errorf("dead letter %.60q of shard %d: %w", id, shard, ErrFull)
		}
		s.push(QueuedEvent{s.nextSeq(now), letter.Event})
	}
	s.deadLetters = slices.Delete(s.deadLetters, i, i+1)
	s.deadLetterBytes -= letter.size()
	return true, nil
}

// Backlog implements [Store].
func (m *Memory) Backlog(_ context.Context, shard int) (Backlog, error) {
	s, _, unlock := m.lock(shard)
	defer unlock()
	b := Backlog{Waiting: len(s.outbox), Dead: len(s.deadLetters), Dropped: s.dropped, Attempts: s.attempts, Answer: s.answer}
	if s.retryAt > 0 {
		b.RetryAt = time.UnixMilli(s.retryAt)
	}
	if len(s.outbox) > 0 {
		b.Oldest = timeOf(s.outbox[0].Seq)
	}
	return b, nil
}
