package events

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

func testSeqs(t *testing.T, open openFunc) {
	s := open(t)
	s.appendEvents(t, 3)
	var last int64
	ids := map[string]bool{}
	for _, e := range s.take(t, 10).Events {
		var v struct {
			ID string
			At int64
		}
		ok(t, json.Unmarshal(e.Event, &v))
		ids[v.ID] = true
		if e.Seq <= last || v.At <= epochMS || v.At > epochMS+e.Seq/seqsPerMS {
			t.Errorf("sequence number %d after %d, time %d", e.Seq, last, v.At)
		}
		last = e.Seq
	}
	equal(t, "different ids", len(ids), 3)
}

func testSent(t *testing.T, open openFunc) {
	s := open(t)
	s.appendEvents(t, 40)
	b := s.take(t, 30)
	equal(t, "events", numbers(t, b), rangeOf(1, 30))
	ok(t, s.Sent(t.Context(), b, b.Events[24].Seq, 0))
	b = s.take(t, 30)
	equal(t, "after the first 25", numbers(t, b), rangeOf(26, 40))
	ok(t, s.Sent(t.Context(), b, b.Events[14].Seq, 0))
	equal(t, "after all", len(s.take(t, 30).Events), 0)
	s.appendEvents(t, 1)
	equal(t, "a new one", numbers(t, s.take(t, 30)), rangeOf(1, 1))
}

// rangeOf returns the numbers from first to last.
func rangeOf(first, last int) (ns []int) {
	for n := first; n <= last; n++ {
		ns = append(ns, n)
	}
	return ns
}

func testTakeBytes(t *testing.T, open openFunc) {
	s := open(t)
	for i := range 5 {
		s.appendEvent(t, largeEvent(i+1, maxBatchBytes*2/5))
	}
	b := s.take(t, 10)
	equal(t, "the events that fit", numbers(t, b), rangeOf(1, 2))
	ok(t, s.Sent(t.Context(), b, b.Events[1].Seq, 0))
	s.appendEvent(t, largeEvent(6, maxBatchBytes*2))
	b = s.take(t, 10)
	equal(t, "the next batch", numbers(t, b), rangeOf(3, 4))
	ok(t, s.Sent(t.Context(), b, b.Events[1].Seq, 0))
	b = s.take(t, 10)
	equal(t, "the batch before the large event", numbers(t, b), rangeOf(5, 5))
	ok(t, s.Sent(t.Context(), b, b.Events[0].Seq, 0))
	equal(t, "the large event alone", numbers(t, s.take(t, 10)), rangeOf(6, 6))
}

func testLease(t *testing.T, open openFunc) {
	s := open(t)
	s.appendEvents(t, 2)
	first := s.take(t, 10)
	equal(t, "events of a second lease before the first expires", len(s.take(t, 10).Events), 0)
	s.advance(t, time.Minute+time.Millisecond)
	second := s.take(t, 10)
	equal(t, "events of a second lease after the first expired", len(second.Events), 2)
	wantError(t, "the expired lease: sent", s.Sent(t.Context(), first, first.Events[1].Seq, 0), ErrFenced)
	wantError(t, "the expired lease: refused", s.Refused(t.Context(), first, first.Events[1].Seq, Refused, 0), ErrFenced)
	_, err := s.Failed(t.Context(), first, first.Events[1].Seq, 0, 0)
	wantError(t, "the expired lease: failed", err, ErrFenced)
	equal(t, "events during the second lease", len(s.take(t, 10).Events), 0)
	ok(t, s.Sent(t.Context(), second, second.Events[0].Seq, 0))
	equal(t, "remaining events", numbers(t, s.take(t, 10)), rangeOf(2, 2))
}

func testLeaseRenewed(t *testing.T, open openFunc) {
	s := open(t)
	s.appendEvents(t, 3)
	b := s.take(t, 10)
	s.advance(t, 40*time.Second)
	ok(t, s.Sent(t.Context(), b, b.Events[0].Seq, time.Minute))
	s.advance(t, 40*time.Second)
	equal(t, "events of a second lease", len(s.take(t, 10).Events), 0)
	ok(t, s.Refused(t.Context(), b, b.Events[1].Seq, Refused, time.Minute))
	s.advance(t, 40*time.Second)
	equal(t, "events of a second lease", len(s.take(t, 10).Events), 0)
	ok(t, s.Sent(t.Context(), b, 0, 0)) // ends the lease
	equal(t, "remaining events", numbers(t, s.take(t, 10)), rangeOf(3, 3))
}

func testFailed(t *testing.T, open openFunc) {
	s := open(t)
	s.appendEvents(t, 2)
	for attempt := range 3 {
		b := s.take(t, 10)
		equal(t, "failed attempts", b.Attempts, attempt)
		equal(t, "events", numbers(t, b), rangeOf(1, 2))
		expired, err := s.Failed(t.Context(), b, b.Events[1].Seq, 10*time.Second, time.Hour)
		ok(t, err)
		equal(t, "expired", expired, 0)
		s.advance(t, 5*time.Second)
		equal(t, "before the next attempt is due", len(s.take(t, 10).Events), 0)
		s.advance(t, 5*time.Second)
	}
	b := s.take(t, 10)
	ok(t, s.Sent(t.Context(), b, b.Events[0].Seq, 0))
	equal(t, "attempts after a success", s.take(t, 10).Attempts, 0)
}

func testExpired(t *testing.T, open openFunc) {
	s := open(t)
	s.appendEvents(t, 2)
	s.ageEvents(t, time.Hour)
	s.appendEvent(t, []byte(`"n":3}`))
	s.appendEvent(t, []byte(`"n":4}`))
	b := s.take(t, 10)
	expired, err := s.Failed(t.Context(), b, b.Events[0].Seq, 0, time.Hour/2)
	ok(t, err)
	equal(t, "expired events of a batch with one event", expired, 1)
	b = s.take(t, 10)
	expired, err = s.Failed(t.Context(), b, b.Events[2].Seq, 0, time.Hour/2)
	ok(t, err)
	equal(t, "expired", expired, 1)
	equal(t, "dead letters", s.deadLetters(t), []string{"expired 1", "expired 2"})
	equal(t, "remaining events", numbers(t, s.take(t, 10)), rangeOf(3, 4))
}

func testRefused(t *testing.T, open openFunc) {
	s := open(t)
	s.appendEvents(t, 3)
	b := s.take(t, 10)
	ok(t, s.Refused(t.Context(), b, b.Events[0].Seq, Refused, time.Minute))
	ok(t, s.Refused(t.Context(), b, b.Events[1].Seq, Gone, 0))
	equal(t, "dead letters", s.deadLetters(t), []string{"refused 1", "gone 2"})
	equal(t, "remaining events", numbers(t, s.take(t, 10)), rangeOf(3, 3))
	letters, err := s.DeadLetters(t.Context(), 3, 1, 10)
	ok(t, err)
	equal(t, "after the first", len(letters), 1)
	if at := letters[0].At; at.Year() < 2026 {
		t.Errorf("dead letter at %v", at)
	}
}

func testOutboxCount(t *testing.T, open openFunc) {
	s := open(t)
	s.setLimits(limits{due: 100, deadlineBytes: 100, outbox: 3, outboxBytes: 1000, deadLetters: 10, deadLetterBytes: 1000})
	s.appendEvents(t, 5)
	equal(t, "events", numbers(t, s.take(t, 10)), rangeOf(3, 5))
	equal(t, "dead letters", s.deadLetters(t), []string{"full 1", "full 2"})
	equal(t, "moved to the dead letters", s.deadLettered, 2)
}

func testOutboxBytes(t *testing.T, open openFunc) {
	s := open(t)
	s.setLimits(limits{due: 100, deadlineBytes: 100, outbox: 100, outboxBytes: 1000, deadLetters: 10, deadLetterBytes: 5000})
	for i := range 3 {
		s.appendEvent(t, largeEvent(i+1, 400))
	}
	b := s.take(t, 10)
	equal(t, "events", numbers(t, b), rangeOf(2, 3))
	ok(t, s.Sent(t.Context(), b, b.Events[1].Seq, 0))
	s.appendEvent(t, largeEvent(4, 400))
	s.appendEvent(t, largeEvent(5, 400))
	equal(t, "events", numbers(t, s.take(t, 10)), rangeOf(4, 5))
	s.appendEvent(t, largeEvent(6, 2000))
	equal(t, "dead letters", s.deadLetters(t), []string{"full 1", "full 4", "full 5"})
	equal(t, "moved to the dead letters", s.deadLettered, 3)
}

func testDeadLetterLimits(t *testing.T, open openFunc) {
	s := open(t)
	s.setLimits(limits{due: 100, deadlineBytes: 100, outbox: 1, outboxBytes: 10_000, deadLetters: 3, deadLetterBytes: 1200})
	s.appendEvents(t, 6)
	equal(t, "dead letters by count", s.deadLetters(t), []string{"full 3", "full 4", "full 5"})
	s.appendEvent(t, largeEvent(7, 500))
	b := s.take(t, 10)
	ok(t, s.Refused(t.Context(), b, b.Events[0].Seq, Refused, 0))
	s.appendEvent(t, largeEvent(8, 500))
	b = s.take(t, 10)
	ok(t, s.Refused(t.Context(), b, b.Events[0].Seq, Refused, 0))
	equal(t, "dead letters by bytes", s.deadLetters(t), []string{"refused 7", "refused 8"})
}

func testRequeue(t *testing.T, open openFunc) {
	s := open(t)
	s.appendEvents(t, 4)
	b := s.take(t, 3)
	ok(t, s.Refused(t.Context(), b, b.Events[2].Seq, Gone, 0))
	moved, err := s.Requeue(t.Context(), 3, 2)
	ok(t, err)
	equal(t, "moved", moved, 2)
	after := s.take(t, 10)
	equal(t, "events", numbers(t, after), []int{4, 1, 2})
	equal(t, "the same event", string(after.Events[1].Event), string(b.Events[0].Event))
	if after.Events[1].Seq <= after.Events[0].Seq {
		t.Errorf("the sequence numbers of %v do not increase", after.Events)
	}
	equal(t, "dead letters", s.deadLetters(t), []string{"gone 3"})
	moved, err = s.Requeue(t.Context(), 3, 10)
	ok(t, err)
	equal(t, "moved", moved, 1)
	equal(t, "dead letters", s.deadLetters(t), nil)
}

func testRequeueRoom(t *testing.T, open openFunc) {
	s := open(t)
	s.setLimits(limits{due: 100, deadlineBytes: 100, outbox: 3, outboxBytes: 10_000, deadLetters: 10, deadLetterBytes: 10_000})
	s.appendEvents(t, 6)
	moved, err := s.Requeue(t.Context(), 3, 10)
	ok(t, err)
	equal(t, "moved into a full outbox", moved, 0)
	b := s.take(t, 10)
	ok(t, s.Sent(t.Context(), b, b.Events[1].Seq, 0))
	moved, err = s.Requeue(t.Context(), 3, 10)
	ok(t, err)
	equal(t, "moved", moved, 2)
	equal(t, "events", numbers(t, s.take(t, 10)), fmt.Sprint([]int{6, 1, 2}))
}
