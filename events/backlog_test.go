package events

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"
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

// testAnswer: the last answer of the endpoint is stored, with the attempts and the next one.
func testAnswer(t *testing.T, open openFunc) {
	s := open(t)
	s.appendEvents(t, 2)
	b := s.take(t, 10)
	b.Answer = Answer{Error: "connection refused, twice"}
	_, err := s.Failed(t.Context(), b, b.Events[1].Seq, 10*time.Second, time.Hour)
	ok(t, err)
	failed, err := ReadBacklog(t.Context(), s)
	ok(t, err)
	if failed.Attempts != 1 || failed.Answer.Error != "connection refused, twice" || failed.Answer.Status != 0 ||
		failed.Answer.At.Year() < 2026 || failed.RetryAt.Sub(failed.Answer.At) != 10*time.Second {
		t.Errorf("after a failure: %+v", failed)
	}
	s.advance(t, 10*time.Second)
	b = s.take(t, 1)
	b.Answer = Answer{Status: 422}
	ok(t, s.Refused(t.Context(), b, b.Events[0].Seq, Refused, 0))
	refused, err := ReadBacklog(t.Context(), s)
	ok(t, err)
	if refused.Attempts != 0 || refused.Answer.Status != 422 || refused.Answer.Error != "" || !refused.RetryAt.IsZero() {
		t.Errorf("after a refusal: %+v", refused)
	}
	b = s.take(t, 1)
	ok(t, s.Sent(t.Context(), b, 0, 0)) // the attempt has not ended
	b = s.take(t, 1)
	unchanged, err := ReadBacklog(t.Context(), s)
	ok(t, err)
	equal(t, "without an answer", unchanged, refused)
	b.Answer = Answer{Status: 200}
	ok(t, s.Sent(t.Context(), b, b.Events[0].Seq, 0))
	sent, err := ReadBacklog(t.Context(), s)
	ok(t, err)
	equal(t, "status after a success", sent.Answer.Status, 200)
}

// testLetter: a single dead letter is sent again or dropped.
func testLetter(t *testing.T, open openFunc) {
	s := open(t)
	s.setLimits(limits{due: 100, deadlineBytes: 100, outbox: 3, outboxBytes: 10_000, deadLetters: 100, deadLetterBytes: 10_000})
	s.appendEvents(t, 3)
	b := s.take(t, 10)
	ok(t, s.Refused(t.Context(), b, b.Events[2].Seq, Refused, 0))
	ids := make([]string, 3)
	for i, e := range b.Events {
		var v struct{ ID string }
		ok(t, json.Unmarshal(e.Event, &v))
		ids[i] = v.ID
	}
	for _, retry := range []bool{true, false} {
		found, err := ChangeLetter(t.Context(), s, "none", retry)
		ok(t, err)
		equal(t, "an unknown id", found, false)
	}
	found, err := ChangeLetter(t.Context(), s, ids[1], true)
	ok(t, err)
	equal(t, "found", found, true)
	equal(t, "dead letters", s.deadLetters(t), []string{"refused 1", "refused 3"})
	again := s.take(t, 10)
	equal(t, "the same event", string(again.Events[0].Event), string(b.Events[1].Event))
	found, err = ChangeLetter(t.Context(), s, ids[2], false)
	ok(t, err)
	equal(t, "found", found, true)
	equal(t, "dead letters", s.deadLetters(t), []string{"refused 1"})
	s.appendEvents(t, 2)
	if _, err := ChangeLetter(t.Context(), s, ids[0], true); !errors.Is(err, ErrFull) {
		t.Errorf("into a full outbox: %v", err)
	}
	equal(t, "dead letters", s.deadLetters(t), []string{"refused 1"})
	sum, err := ReadBacklog(t.Context(), s)
	ok(t, err)
	equal(t, "waiting and dead", []int{sum.Waiting, sum.Dead}, []int{3, 1})
}
