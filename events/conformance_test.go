package events

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestConformance tests the contract of [Store] for each implementation.
func TestConformance(t *testing.T) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, open openFunc)
	}{
		{"a check is due at once", testScheduleNow},
		{"a check of an entry reported present is due after the grace", testScheduleAfterGrace},
		{"a scheduled check ends a claim", testScheduleEndsClaim},
		{"one call schedules many checks", testScheduleMany},
		{"one call schedules the checks for which there is room", testScheduleManyFull},
		{"the due list is limited", testDueLimit},
		{"a claim expires and its token becomes invalid", testClaimExpires},
		{"each change of a state is reported once", testReportedOnce},
		{"a result without an event appends none", testNoEvent},
		{"a deadline is checked once", testDeadline},
		{"deadline records are limited", testDeadlineLimit},
		{"entries reported present are listed in pages", testReportedPages},

		{"a channel is tracked before its fields are checked", testTrack},
		{"the earliest check of fields counts", testFieldsEarliest},
		{"a check of fields that is scheduled during a claim stays", testFieldsDuringClaim},
		{"the reported position is the fencing token of fields", testFieldsFenced},
		{"a channel without fields is tracked for a while", testFieldsIdle},
		{"tracked channels are limited and listed in pages", testTrackedPages},
		{"events of fields are appended in order", testFieldsEvents},

		{"events have sequence numbers, ids and times", testSeqs},
		{"events leave the outbox in order", testSent},
		{"the size of a batch is limited", testTakeBytes},
		{"a lease excludes others and is fenced", testLease},
		{"a lease is renewed", testLeaseRenewed},
		{"a failed attempt is repeated later", testFailed},
		{"events that failed for too long become dead letters", testExpired},
		{"refused events become dead letters", testRefused},
		{"the outbox is limited by count", testOutboxCount},
		{"the outbox is limited by bytes", testOutboxBytes},
		{"dead letters are limited", testDeadLetterLimits},
		{"dead letters are requeued", testRequeue},
		{"the backlog is counted", testBacklog},
		{"the last answer is kept", testAnswer},
		{"a dead letter is sent again or dropped", testLetter},
		{"dead letters of all shards are listed in pages and requeued", testAllDeadLetters},
		{"dead letters are requeued while there is room", testRequeueRoom},
	} {
		t.Run(c.name, func(t *testing.T) { eachStore(t, func(t *testing.T, open openFunc) { c.test(t, open) }) })
	}
}

// claims claims all due entries of a shard.
func (s *testStore) claims(t *testing.T, shard int) []Claim {
	t.Helper()
	claims, err := s.Claim(t.Context(), shard, 100, claimTTL)
	ok(t, err)
	return claims
}

// due claims all due entries of a shard and returns their names.
func (s *testStore) due(t *testing.T, shard int) (entries []string) {
	t.Helper()
	for _, c := range s.claims(t, shard) {
		entries = append(entries, c.Entry)
	}
	return entries
}

// check schedules a check of an entry in shard 3 and settles it. It reports whether that created an
// event.
func (s *testStore) check(t *testing.T, entry string, present bool) (created bool) {
	t.Helper()
	ok(t, s.scheduleOne(t.Context(), 3, entry, 0))
	for _, c := range s.claims(t, 3) {
		settled, err := s.Settle(t.Context(), 3, CheckResult{Claim: c, Present: present, Event: fmt.Appendf(nil, `"is":"%s %v"}`, entry, present)})
		ok(t, err)
		created = created || settled.Created
	}
	return created
}

// appendEvents appends n events, numbered from 1, to the outbox of shard 3.
func (s *testStore) appendEvents(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		s.appendEvent(t, fmt.Appendf(nil, `"n":%d}`, i+1))
	}
}

// appendEvent appends an event to the outbox of shard 3.
func (s *testStore) appendEvent(t *testing.T, event []byte) {
	t.Helper()
	entry := fmt.Sprintf("d:%d", unique.Add(1))
	ok(t, s.SetDeadline(t.Context(), 3, entry, []byte("{}"), time.Millisecond))
	s.advance(t, time.Millisecond)
	for _, c := range s.claims(t, 3) {
		settled, err := s.Settle(t.Context(), 3, CheckResult{Claim: c, Event: event})
		if !settled.Valid || !settled.Created || err != nil {
			t.Fatalf("settled %s: %+v, %v", c.Entry, settled, err)
		}
		s.deadLettered += settled.DeadLettered
	}
}

// take leases the outbox of shard 3 for a minute.
func (s *testStore) take(t *testing.T, n int) Batch {
	t.Helper()
	b, err := s.Take(t.Context(), 3, n, time.Minute)
	ok(t, err)
	return b
}

// number returns the number of an event.
func number(t *testing.T, event []byte) int {
	t.Helper()
	var v struct{ N int }
	ok(t, json.Unmarshal(event, &v))
	return v.N
}

func numbers(t *testing.T, b Batch) (ns []int) {
	t.Helper()
	for _, e := range b.Events {
		ns = append(ns, number(t, e.Event))
	}
	return ns
}

// deadLetters returns the reasons and numbers of the dead letters of shard 3.
func (s *testStore) deadLetters(t *testing.T) (letters []string) {
	t.Helper()
	all, err := s.DeadLetters(t.Context(), 3, 0, 100)
	ok(t, err)
	for _, l := range all {
		letters = append(letters, fmt.Sprintf("%s %d", l.Reason, number(t, l.Event)))
	}
	return letters
}

// largeEvent returns an event with a number and about so many bytes.
func largeEvent(n, bytes int) []byte {
	return fmt.Appendf(nil, `"n":%d,"x":"%s"}`, n, strings.Repeat("x", bytes))
}
