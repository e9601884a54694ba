package queue

import (
	"context"
	"fmt"
	"slices"
	"strconv"
)

// memoryRequests is a list of requests, qq_{N}.
type memoryRequests struct {
	waiting []Request
	expires int64 // Unix ms
}

func (l *memoryRequests) expire(now int64) int64 {
	if now >= l.expires {
		l.waiting = nil
		return 0
	}
	return l.expires
}

// PushRequest is like [Redis.PushRequest].
func (m *Memory) PushRequest(_ context.Context, request Request) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.sweepLocked()
	name := strconv.Itoa(request.List)
	l, found := m.requests.get(name, now)
	if !found {
		l = &memoryRequests{}
	}
	if err := l.check(request, m.opts); err != nil {
		return fmt.Errorf("push request to %d: %w", request.List, err)
	}
	request.Data = slices.Clone(request.Data)
	l.waiting = append(l.waiting, request)
	l.expires = now + millis(m.opts.RequestTTL)
	m.requests.put(name, l, now)
	return nil
}

// check returns the error for a request that has no room.
func (l *memoryRequests) check(request Request, o Options) error {
	size, own := int64(len(request.Data)), 0
	sum, ownSum := size, size
	for _, r := range l.waiting {
		sum += int64(len(r.Data))
		if r.Sender == request.Sender {
			own++
			ownSum += int64(len(r.Data))
		}
	}
	switch {
	case len(l.waiting) >= o.RequestCap:
		return ErrRequestCap
	case len(l.waiting) > 0 && sum > o.RequestBytes:
		return ErrRequestBytes
	case own >= o.RequestShare:
		return ErrRequestShare
	case own > 0 && ownSum > o.RequestShareBytes:
		return ErrRequestShareBytes
	}
	return nil
}
