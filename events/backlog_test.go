package events

import (
	"errors"
	"fmt"
	"testing"
)

func testBacklog(t *testing.T, open openFunc) {
	s := open(t)
	none, err := s.Backlog(t.Context(), 3)
	ok(t, err)
	equal(t, "of an empty shard", none, Backlog{})
	s.setLimits(limits{due: 100, deadlineBytes: 100, outbox: 3, outboxBytes: 10_000, deadLetters: 2, deadLetterBytes: 10_000})
	s.appendEvents(t, 6)
	first := s.take(t, 1).Events[0]
	b, err := s.Backlog(t.Context(), 3)
	ok(t, err)
	equal(t, "of a full outbox", b, Backlog{Waiting: 3, Dead: 2, Dropped: 1, Oldest: timeOf(first.Seq)})
	sum, err := ReadBacklog(t.Context(), s)
	ok(t, err)
	equal(t, "of all shards", sum, b)
}

// refuse makes a dead letter in a shard.
func (s *testStore) refuse(t *testing.T, shard, n int) {
	t.Helper()
	entry := fmt.Sprint("u:", n)
	ok(t, s.Store.Schedule(t.Context(), 0, Check{shard, entry})[0])
	claims, err := s.Claim(t.Context(), shard, 1, Grace)
	ok(t, err)
	_, err = s.Settle(t.Context(), shard, CheckResult{Claim: claims[0], Present: true, Event: body(map[string]int{"n": n})})
	ok(t, err)
	b, err := s.Take(t.Context(), shard, 10, Grace)
	ok(t, err)
	ok(t, s.Refused(t.Context(), b, b.Events[0].Seq, Refused, 0))
}

func testAllDeadLetters(t *testing.T, open openFunc) {
	s := open(t)
	for n, shard := range []int{0, 0, 0, 4, 15} {
		s.refuse(t, shard, n)
	}
	for _, size := range []int{1, 2, 3, 1000} {
		cursor, found := "", 0
		for pages := 0; ; pages++ {
			page, next, err := ReadDeadLetters(t.Context(), s, cursor, size)
			ok(t, err)
			if found += len(page); len(page) > size || pages > 6 {
				t.Fatalf("page %d has %d letters", pages, len(page))
			}
			if cursor = next; next == "" {
				break
			}
		}
		equal(t, fmt.Sprint("letters in pages of ", size), found, 5)
	}
	for _, cursor := range []string{"x", "1", "1/", "/1", "-1/0", "16/0", "0/-1"} {
		if _, _, err := ReadDeadLetters(t.Context(), s, cursor, 1); !errors.Is(err, ErrBadCursor) {
			t.Errorf("%q: %v", cursor, err)
		}
	}
	moved, err := RequeueAll(t.Context(), s)
	ok(t, err)
	equal(t, "moved", moved, 5)
	sum, err := ReadBacklog(t.Context(), s)
	ok(t, err)
	equal(t, "waiting", sum.Waiting, 5)
	equal(t, "dead", sum.Dead, 0)
}
