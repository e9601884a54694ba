package events

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// scheduleFields schedules a check of the fields of channel x in shard 3.
func (s *testStore) scheduleFields(t *testing.T, track bool, at int64) {
	t.Helper()
	ok(t, s.Store.ScheduleFields(t.Context(), track, FieldsCheck{Check{3, "f:x"}, at})[0])
}

// trackedX returns what the store holds of channel x, and whether it is tracked.
func (s *testStore) trackedX(t *testing.T) (reported int64, empty bool, found bool) {
	t.Helper()
	channels, _, err := s.TrackedChannels(t.Context(), 3, "", 100)
	ok(t, err)
	for _, c := range channels {
		if c.Entry == "f:x" {
			return c.Reported, c.Empty, true
		}
	}
	return 0, false, false
}

// claimX claims channel x and returns the result that there are fields and no news.
func (s *testStore) claimX(t *testing.T) FieldsResult {
	t.Helper()
	claims := s.claims(t, 3)
	if len(claims) != 1 || claims[0].Entry != "f:x" {
		t.Fatalf("claims %+v, want one of f:x", claims)
	}
	tracked, err := parseTracked(string(claims[0].Record))
	ok(t, err)
	return FieldsResult{Claim: claims[0], Before: tracked.Reported, Reported: tracked.Reported}
}

// settleX settles a claim of channel x, and returns whether it was valid.
func (s *testStore) settleX(t *testing.T, r FieldsResult) bool {
	t.Helper()
	settled, err := s.SettleFields(t.Context(), 3, r)
	ok(t, err)
	equal(t, "created", settled.Created, settled.Valid && len(r.Events) > 0)
	return settled.Valid
}

// storeNow returns the time of the store, Unix ms, by tracking another channel.
func (s *testStore) storeNow(t *testing.T) int64 {
	t.Helper()
	ok(t, s.Store.ScheduleFields(t.Context(), true, FieldsCheck{Check{5, "f:now"}, 0})[0])
	channels, _, err := s.TrackedChannels(t.Context(), 5, "", 1)
	ok(t, err)
	return channels[0].Renewed
}

func testTrack(t *testing.T, open openFunc) {
	s := open(t)
	s.scheduleFields(t, false, 1)
	equal(t, "due without tracking", s.due(t, 3), nil)
	s.scheduleFields(t, true, 0)
	equal(t, "due after tracking", s.due(t, 3), nil)
	reported, empty, found := s.trackedX(t)
	equal(t, "tracked, without fields", []bool{found, empty}, []bool{true, true})
	if now := s.storeNow(t); reported > (now-trackLookBack.Milliseconds()-epochMS)*seqsPerMS || reported < (now-2*trackLookBack.Milliseconds()-epochMS)*seqsPerMS {
		t.Errorf("at %d the log is reported up to %d", now, reported)
	}
	s.scheduleFields(t, false, 1)
	r := s.claimX(t)
	equal(t, "position of the claim", r.Before, reported)
	r.Reported = reported + 7
	equal(t, "valid", s.settleX(t, r), true)
	s.scheduleFields(t, true, 0) // tracks it again
	reported, empty, _ = s.trackedX(t)
	equal(t, "position and emptiness of a channel that was tracked", []any{reported, empty}, []any{r.Reported, false})
	equal(t, "due after the check", s.due(t, 3), nil)
}

func testFieldsEarliest(t *testing.T, open openFunc) {
	s := open(t)
	now := s.storeNow(t)
	s.scheduleFields(t, true, now+time.Hour.Milliseconds())
	s.scheduleFields(t, false, now+time.Minute.Milliseconds())
	s.scheduleFields(t, false, now+time.Hour.Milliseconds())
	equal(t, "due too early", s.due(t, 3), nil)
	s.advance(t, time.Minute)
	r := s.claimX(t)
	r.Next = s.storeNow(t) + 2*time.Minute.Milliseconds()
	equal(t, "valid", s.settleX(t, r), true)
	equal(t, "due after the check", s.due(t, 3), nil)
	s.advance(t, 2*time.Minute)
	s.settleX(t, s.claimX(t))
	s.advance(t, 2*time.Hour)
	equal(t, "due after the last check", s.due(t, 3), nil)
}

func testFieldsDuringClaim(t *testing.T, open openFunc) {
	s := open(t)
	now := s.storeNow(t)
	for _, next := range []int64{0, now + 5*time.Hour.Milliseconds()} {
		s.scheduleFields(t, true, 1)
		r := s.claimX(t)
		s.scheduleFields(t, false, now+time.Hour.Milliseconds())
		r.Next = next
		equal(t, "valid", s.settleX(t, r), true)
		equal(t, "due before the end of the claim", s.due(t, 3), nil)
		s.advance(t, claimTTL)
		s.settleX(t, s.claimX(t)) // due at the end of the claim, since the claim has lost the time of the check
		equal(t, "due after both", s.due(t, 3), nil)
	}
	s.scheduleFields(t, false, 1)
	s.claimX(t) // by a process that is killed
	s.advance(t, claimTTL)
	s.settleX(t, s.claimX(t))
}

func testFieldsFenced(t *testing.T, open openFunc) {
	s := open(t)
	s.scheduleFields(t, true, 1)
	slow := s.claimX(t)
	s.advance(t, claimTTL)
	r := s.claimX(t)
	r.Reported++
	r.Events = []NewEvent{{"a", []byte(`"n":1}`)}}
	slow.Reported += 2
	slow.Events = []NewEvent{{"a", []byte(`"n":1}`)}, {"b", []byte(`"n":2}`)}}
	equal(t, "the later claim is valid", s.settleX(t, r), true)
	equal(t, "the claim that expired is valid", s.settleX(t, slow), false)
	equal(t, "the later claim is valid again", s.settleX(t, r), false)
	equal(t, "events", numbers(t, s.take(t, 10)), []int{1})

	s.scheduleFields(t, true, 1)
	s.claimX(t)
	r = slow
	r.Token, r.Record = "0", []byte("x") // a claim is not needed for the position to be valid
	r.Before, r.Reported, r.Events = slow.Before+1, slow.Before+2, slow.Events[1:]
	equal(t, "a claim that another one has replaced is valid", s.settleX(t, r), true)
	s.advance(t, claimTTL)
	equal(t, "position of the other claim", s.claimX(t).Before, r.Reported)
}

func testFieldsIdle(t *testing.T, open openFunc) {
	s := open(t)
	s.scheduleFields(t, true, 1)
	r := s.claimX(t)
	r.Empty = true
	s.settleX(t, r)
	s.advance(t, trackIdle-time.Minute)
	equal(t, "due before the end of the tracking", s.due(t, 3), nil)
	s.advance(t, time.Minute)
	s.settleX(t, s.claimX(t))
	_, _, found := s.trackedX(t)
	equal(t, "tracked with fields", found, true)
	for _, end := range []func(r *FieldsResult){func(r *FieldsResult) { r.Empty = true }, func(r *FieldsResult) { r.Untrack = true }} {
		s.scheduleFields(t, true, 1)
		r = s.claimX(t)
		r.Untrack = true
		s.scheduleFields(t, true, 1) // ends the claim
		s.settleX(t, r)
		_, _, found = s.trackedX(t)
		equal(t, "tracked after a call of TrackFields", found, true)
		r = s.claimX(t)
		s.ageTracked(t, trackIdle)
		end(&r)
		s.settleX(t, r)
		_, _, found = s.trackedX(t)
		equal(t, "tracked at the end", found, false)
		equal(t, "due at the end", s.due(t, 3), nil)
	}
	s.scheduleFields(t, true, 1)
	r = s.claimX(t)
	r.Untrack = true
	s.settleX(t, r)
	r.Untrack, r.Record = false, nil
	equal(t, "a claim of a channel that is not tracked is valid", s.settleX(t, r), false)
}

func testTrackedPages(t *testing.T, open openFunc) {
	s := open(t)
	s.setLimits(limits{fields: 700})
	checks := make([]FieldsCheck, 701)
	for i := range checks {
		checks[i] = FieldsCheck{Check{3, fmt.Sprint("f:", i)}, 0}
	}
	errs := s.Store.ScheduleFields(t.Context(), true, checks...)
	for i, err := range errs {
		if i < 700 {
			ok(t, err)
		}
	}
	wantError(t, "one channel too many", errs[700], ErrFull)
	ok(t, s.Store.ScheduleFields(t.Context(), true, checks[5])[0])
	seen, pages := map[string]bool{}, 0
	for cursor := ""; ; pages++ {
		channels, next, err := s.TrackedChannels(t.Context(), 3, cursor, 50)
		ok(t, err)
		for _, c := range channels {
			seen[c.channel()] = true
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	equal(t, "tracked", len(seen), 700)
	if pages < 3 {
		t.Errorf("%d pages, want more", pages+1)
	}
}

func testFieldsEvents(t *testing.T, open openFunc) {
	s := open(t)
	s.setLimits(limits{due: 100, fields: 10, outbox: 3, outboxBytes: 1000, deadLetters: 10, deadLetterBytes: 1000})
	s.scheduleFields(t, true, 1)
	r := s.claimX(t)
	for n := 1; n <= 5; n++ {
		r.Events = append(r.Events, NewEvent{fmt.Sprint("id", n), fmt.Appendf(nil, `"n":%d,"x":"<\u2028>"}`, n)})
	}
	settled, err := s.SettleFields(t.Context(), 3, r)
	ok(t, err)
	equal(t, "settled", settled, Settled{Valid: true, Created: true, DeadLettered: 2})
	b := s.take(t, 10)
	equal(t, "events", numbers(t, b), []int{3, 4, 5})
	equal(t, "dead letters", s.deadLetters(t), []string{"full 1", "full 2"})
	equal(t, "event", string(b.Events[0].Event[:12]), `{"id":"id3",`)
	if want := `,"n":3,"x":"<\u2028>"}`; !strings.HasSuffix(string(b.Events[0].Event), want) {
		t.Errorf("event %s, want one that ends in %s", b.Events[0].Event, want)
	}
}
