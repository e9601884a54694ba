package events

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func testScheduleNow(t *testing.T, open openFunc) {
	s := open(t)
	ok(t, s.scheduleOne(t.Context(), 3, "u:ann", Grace))
	ok(t, s.scheduleOne(t.Context(), 3, "u:ann", Grace))
	ok(t, s.scheduleOne(t.Context(), 4, "u:bob", Grace))
	equal(t, "due", s.due(t, 3), []string{"u:ann"})
	equal(t, "due while claimed", s.due(t, 3), nil)
	equal(t, "due in the other shard", s.due(t, 4), []string{"u:bob"})
}

func testScheduleAfterGrace(t *testing.T, open openFunc) {
	s := open(t)
	equal(t, "created", s.check(t, "u:ann", true), true)
	ok(t, s.scheduleOne(t.Context(), 3, "u:ann", Grace))
	equal(t, "due", s.due(t, 3), nil)
	s.advance(t, Grace/2)
	ok(t, s.scheduleOne(t.Context(), 3, "u:ann", Grace))
	s.advance(t, Grace/2)
	equal(t, "due within the grace of the last change", s.due(t, 3), nil)
	s.advance(t, Grace/2)
	equal(t, "due after the grace", s.due(t, 3), []string{"u:ann"})
}

func testScheduleEndsClaim(t *testing.T, open openFunc) {
	s := open(t)
	ok(t, s.scheduleOne(t.Context(), 3, "u:ann", 0))
	old := s.claims(t, 3)[0]
	ok(t, s.scheduleOne(t.Context(), 3, "u:ann", 0))
	settled, err := s.Settle(t.Context(), 3, CheckResult{Claim: old, Present: true, Event: []byte(`"n":1}`)})
	ok(t, err)
	equal(t, "a claim that is older than the check: valid, created", []bool{settled.Valid, settled.Created}, []bool{false, false})
	equal(t, "events", len(s.take(t, 10).Events), 0)
	equal(t, "due", s.due(t, 3), []string{"u:ann"})
}

func testScheduleMany(t *testing.T, open openFunc) {
	s := open(t)
	const n = 1000 // more than one run of the script schedules in a shard
	equal(t, "created", s.check(t, "u:0", true), true)
	var checks []Check
	for i := range n {
		checks = append(checks, Check{3 + i%2, fmt.Sprint("u:", i)}, Check{3, "u:0"})
	}
	for _, err := range s.Store.Schedule(t.Context(), Grace, checks...) {
		ok(t, err)
	}
	equal(t, "errors of a call without checks", len(s.Store.Schedule(t.Context(), Grace)), 0)
	for shard, want := range map[int]int{3: n/2 - 1, 4: n / 2} {
		claims, err := s.Claim(t.Context(), shard, 2*n, claimTTL)
		ok(t, err)
		equal(t, fmt.Sprint("due in shard ", shard), len(claims), want)
	}
	s.advance(t, Grace)
	equal(t, "due after the grace", s.due(t, 3), []string{"u:0"})
}

func testScheduleManyFull(t *testing.T, open openFunc) {
	s := open(t)
	s.setLimits(limits{due: 2})
	ok(t, s.scheduleOne(t.Context(), 3, "u:ann", 0))
	errs := s.Store.Schedule(t.Context(), 0, Check{3, "u:bob"}, Check{3, "u:cat"}, Check{4, "u:dan"}, Check{3, "u:ann"}, Check{3, "u:bob"})
	for i, want := range []error{nil, ErrFull, nil, nil, nil} {
		wantError(t, fmt.Sprint("check ", i), errs[i], want)
	}
	due := s.due(t, 3)
	slices.Sort(due)
	equal(t, "due", due, []string{"u:ann", "u:bob"})
	equal(t, "due in the other shard", s.due(t, 4), []string{"u:dan"})
}

func testDueLimit(t *testing.T, open openFunc) {
	s := open(t)
	s.setLimits(limits{due: 2, deadlineBytes: 100})
	ok(t, s.scheduleOne(t.Context(), 3, "u:ann", 0))
	ok(t, s.SetDeadline(t.Context(), 3, "d:1", []byte("{}"), time.Hour))
	wantError(t, "one entry too many", s.scheduleOne(t.Context(), 3, "u:bob", 0), ErrFull)
	wantError(t, "one entry too many", s.SetDeadline(t.Context(), 3, "d:2", []byte("{}"), time.Hour), ErrFull)
	ok(t, s.scheduleOne(t.Context(), 3, "u:ann", 0)) // is on the list already
	ok(t, s.scheduleOne(t.Context(), 4, "u:bob", 0))
}

func testClaimExpires(t *testing.T, open openFunc) {
	s := open(t)
	ok(t, s.scheduleOne(t.Context(), 3, "u:ann", 0))
	first := s.claims(t, 3)[0]
	s.advance(t, claimTTL/2)
	equal(t, "due while claimed", s.due(t, 3), nil)
	s.advance(t, claimTTL/2)
	second := s.claims(t, 3)[0]
	for _, c := range []struct {
		name  string
		claim Claim
		valid bool
	}{{"the expired claim", first, false}, {"the later claim", second, true}, {"the later claim again", second, false}} {
		settled, err := s.Settle(t.Context(), 3, CheckResult{Claim: c.claim, Present: true, Event: []byte(`"n":1}`)})
		ok(t, err)
		equal(t, c.name+": valid, created", []bool{settled.Valid, settled.Created}, []bool{c.valid, c.valid})
	}
	equal(t, "events", numbers(t, s.take(t, 10)), []int{1})
}

func testReportedOnce(t *testing.T, open openFunc) {
	s := open(t)
	for i, c := range []struct{ present, created bool }{
		{false, false}, {true, true}, {true, false}, {false, true}, {false, false}, {true, true},
	} {
		equal(t, fmt.Sprint("created in step ", i), s.check(t, "c:news", c.present), c.created)
	}
	equal(t, "events", len(s.take(t, 10).Events), 3)
}

func testNoEvent(t *testing.T, open openFunc) {
	s := open(t)
	ok(t, s.scheduleOne(t.Context(), 3, "u:ann", 0))
	settled, err := s.Settle(t.Context(), 3, CheckResult{Claim: s.claims(t, 3)[0], Present: true})
	ok(t, err)
	equal(t, "valid, created", []bool{settled.Valid, settled.Created}, []bool{true, false})
	equal(t, "events", len(s.take(t, 10).Events), 0)
	equal(t, "created when the user is offline", s.check(t, "u:ann", false), true)
}

func testDeadline(t *testing.T, open openFunc) {
	s := open(t)
	ok(t, s.SetDeadline(t.Context(), 3, "d:1", []byte(`{"a":1}`), time.Minute))
	ok(t, s.SetDeadline(t.Context(), 3, "d:1", []byte(`{"a":2}`), time.Hour)) // as a repeated push does
	equal(t, "due", s.due(t, 3), nil)
	s.advance(t, time.Minute)
	claim := s.claims(t, 3)[0]
	equal(t, "record", string(claim.Record), `{"a":1}`)
	settled, err := s.Settle(t.Context(), 3, CheckResult{Claim: claim, Event: []byte(`"n":7}`), ID: "mine"})
	ok(t, err)
	equal(t, "valid, created", []bool{settled.Valid, settled.Created}, []bool{true, true})
	b := s.take(t, 10)
	equal(t, "event", string(b.Events[0].Event[:13]), `{"id":"mine",`)

	ok(t, s.SetDeadline(t.Context(), 3, "d:2", []byte(`{}`), time.Minute))
	s.advance(t, time.Hour)
	settled, err = s.Settle(t.Context(), 3, CheckResult{Claim: s.claims(t, 3)[0]}) // the message was acknowledged
	ok(t, err)
	equal(t, "valid, created", []bool{settled.Valid, settled.Created}, []bool{true, false})
}

func testDeadlineLimit(t *testing.T, open openFunc) {
	s := open(t)
	s.setLimits(limits{due: 100, deadlineBytes: 10, outbox: 10, outboxBytes: 1000, deadLetters: 1, deadLetterBytes: 1000})
	ok(t, s.SetDeadline(t.Context(), 3, "d:1", []byte("12345"), time.Minute))
	ok(t, s.SetDeadline(t.Context(), 3, "d:2", []byte("67890"), time.Minute))
	wantError(t, "one byte too many", s.SetDeadline(t.Context(), 3, "d:3", []byte("1"), time.Minute), ErrFull)
	s.advance(t, time.Minute)
	for _, c := range s.claims(t, 3) {
		_, err := s.Settle(t.Context(), 3, CheckResult{Claim: c})
		ok(t, err)
	}
	ok(t, s.SetDeadline(t.Context(), 3, "d:3", []byte("1234567890"), time.Minute))
	wantError(t, "one byte too many", s.SetDeadline(t.Context(), 3, "d:4", []byte("1"), time.Minute), ErrFull)
}

func testReportedPages(t *testing.T, open openFunc) {
	s := open(t)
	var want []string
	for i := range 1200 { // more than Redis returns in one page of a small hash
		entry := fmt.Sprintf("u:%04d", i)
		s.check(t, entry, true)
		if i%2 == 0 {
			s.check(t, entry, false)
			continue
		}
		want = append(want, entry)
	}
	var all []string
	pages := 0
	for cursor := ""; ; pages++ {
		entries, next, err := s.ReportedPresent(t.Context(), 3, cursor, 50)
		ok(t, err)
		all = append(all, entries...)
		if cursor = next; cursor == "" {
			break
		}
	}
	slices.Sort(all)
	equal(t, "reported present", slices.Compact(all), want)
	if pages < 3 {
		t.Errorf("%d pages, want more", pages+1)
	}
}
