package events

import (
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
	if len(s.out) == 0 || s.leased > now || s.retry > now {
		return b, nil
	}
	room := maxPageBytes
	for i, q := range s.out {
		if room -= q.size(); i == n || room < 0 && i > 0 {
			break
		}
		b.Events = append(b.Events, q)
	}
	s.fence++
	s.leased = now + lease.Milliseconds()
	b.Fence, b.Attempts = s.fence, s.attempts
	return b, nil
}

// ended checks the fence of a batch, and ends the lease or renews it.
func (m *Memory) ended(s *memoryShard, b Batch, now int64, keep time.Duration) error {
	if s.fence != b.Fence || b.Fence == 0 {
		return fmt.Errorf("end a delivery of shard %d: %w", b.Shard, ErrFenced)
	}
	s.leased, s.attempts, s.retry = 0, 0, 0
	if keep > 0 {
		s.leased = now + keep.Milliseconds()
	}
	return nil
}

// Sent implements [Store].
func (m *Memory) Sent(_ context.Context, b Batch, to int64, keep time.Duration) error {
	s, now, unlock := m.lock(b.Shard)
	defer unlock()
	if err := m.ended(s, b, now, keep); err != nil {
		return err
	}
	for len(s.out) > 0 && s.out[0].Place <= to {
		s.pop()
	}
	return nil
}

// Failed implements [Store].
func (m *Memory) Failed(_ context.Context, b Batch, to int64, again, maxAge time.Duration) (int, error) {
	s, now, unlock := m.lock(b.Shard)
	defer unlock()
	attempts := s.attempts
	if err := m.ended(s, b, now, 0); err != nil {
		return 0, err
	}
	s.attempts, s.retry = attempts+1, now+again.Milliseconds()
	to = min(to, (now-maxAge.Milliseconds()-epochMS)*placesPerMS)
	return m.buryTo(s, to, Expired, now), nil
}

// Refused implements [Store].
func (m *Memory) Refused(_ context.Context, b Batch, to int64, why Reason, keep time.Duration) error {
	s, now, unlock := m.lock(b.Shard)
	defer unlock()
	if err := m.ended(s, b, now, keep); err != nil {
		return err
	}
	m.buryTo(s, to, why, now)
	return nil
}

func (m *Memory) buryTo(s *memoryShard, to int64, why Reason, now int64) (n int) {
	for len(s.out) > 0 && s.out[0].Place <= to {
		m.bury(s, why, now)
		n++
	}
	return n
}

// Dead implements [Store].
func (m *Memory) Dead(_ context.Context, shard, from, n int) ([]DeadLetter, error) {
	s, _, unlock := m.lock(shard)
	defer unlock()
	from = min(from, len(s.dead))
	return slices.Clone(s.dead[from:min(from+n, len(s.dead))]), nil
}

// Retry implements [Store].
func (m *Memory) Retry(_ context.Context, shard, n int) (moved int, err error) {
	s, now, unlock := m.lock(shard)
	defer unlock()
	for moved < n && len(s.dead) > 0 && len(s.out) < m.bounds.out {
		if len(s.out) > 0 && s.outBytes+s.dead[0].size() > m.bounds.outBytes {
			break
		}
		s.push(Queued{s.place(now), s.unbury().Event})
		moved++
	}
	return moved, nil
}
