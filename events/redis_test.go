package events

import (
	"context"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/keytable"
	"switchboard/internal/redispipe"
	"switchboard/internal/redistest"
)

// TestKeyLimits writes all keys, in its own Redis, and checks the kinds of keys after each step.
func TestKeyLimits(t *testing.T) {
	own := redistest.Start(t)
	client := own.Client(t)
	r := NewRedis(redispipe.New(client, redispipe.Options{}), StoreOptions{})
	s := &testStore{Store: r, keys: r.keys, advance: func(t *testing.T, d time.Duration) {
		for shard := range Shards {
			ageShard(t, client, r.keys, shard, d)
		}
	}}
	check := func(what string, kinds int) {
		t.Helper()
		count, err := keytable.Check(t.Context(), client)
		if err != nil || len(count) != kinds {
			t.Errorf("%s: %v, %v; want %d kinds of keys", what, count, err, kinds)
		}
	}
	ok(t, s.scheduleOne(t.Context(), 3, "u:ann", Grace))
	check("after Schedule", 1)
	s.check(t, "u:ann", true)
	check("after Settle of a user", 3)
	s.appendEvents(t, 2)
	check("after Settle of a message", 3)
	ok(t, s.SetDeadline(t.Context(), 3, "d:9", []byte("{}"), time.Hour))
	check("after SetDeadline", 5)
	s.scheduleFields(t, true, 1)
	check("after ScheduleFields", 6)
	s.settleX(t, s.claimX(t))
	check("after SettleFields", 6)
	b := s.take(t, 1)
	check("after Take", 6)
	ok(t, s.Refused(t.Context(), b, b.Events[0].Seq, Refused, 0))
	check("after Refused", 7)
	b = s.take(t, 1)
	_, err := s.Failed(t.Context(), b, b.Events[0].Seq, 0, time.Hour)
	ok(t, err)
	b = s.take(t, 10)
	ok(t, s.Sent(t.Context(), b, b.Events[len(b.Events)-1].Seq, 0))
	_, err = s.Requeue(t.Context(), 3, 10)
	ok(t, err)
	check("after Sent and Requeue", 6)
}

// TestCheckAtEndOfClaim schedules a check for the millisecond in which a claim of the same entry
// expires. The claim must become invalid.
func TestCheckAtEndOfClaim(t *testing.T) {
	s := openRedis(t)
	ok(t, s.scheduleOne(t.Context(), 3, "u:ann", 0))
	claim := s.claims(t, 3)[0]
	end, err := strconv.ParseFloat(claim.Token, 64)
	ok(t, err)
	ok(t, s.client(t).ZAdd(t.Context(), s.keys.due(3), redis.Z{Score: math.Floor(end), Member: "u:ann"}).Err())
	done, err := s.Settle(t.Context(), 3, CheckResult{Claim: claim, Present: true})
	ok(t, err)
	equal(t, "valid", done.Valid, false)
}

// TestReportedTTLRenewed checks that listing the reported entries renews their TTL, although
// nothing changes.
func TestReportedTTLRenewed(t *testing.T) {
	s := openRedis(t)
	client := s.client(t)
	s.check(t, "u:ann", true)
	ok(t, client.PExpire(t.Context(), s.keys.reported(3), time.Hour).Err())
	_, _, err := s.ReportedPresent(t.Context(), 3, "", 10)
	ok(t, err)
	if left := client.PTTL(t.Context(), s.keys.reported(3)).Val(); left < Retention/2 {
		t.Errorf("TTL %v", left)
	}
}

// TestTrackedTTLRenewed is TestReportedTTLRenewed for tracked channels.
func TestTrackedTTLRenewed(t *testing.T) {
	s := openRedis(t)
	client := s.client(t)
	s.scheduleFields(t, true, 0)
	ok(t, client.PExpire(t.Context(), s.keys.fields(3), time.Hour).Err())
	_, _, err := s.TrackedChannels(t.Context(), 3, "", 10)
	ok(t, err)
	if left := client.PTTL(t.Context(), s.keys.fields(3)).Val(); left < Retention/2 {
		t.Errorf("TTL %v", left)
	}
}

// TestCountersOfExpiredKeys checks that the byte counters of expired keys do not fill a shard.
func TestCountersOfExpiredKeys(t *testing.T) {
	s := openRedis(t)
	s.setLimits(limits{due: 100, deadlineBytes: 10, outbox: 100, outboxBytes: 300, deadLetters: 100, deadLetterBytes: 600})
	client := s.client(t)
	ok(t, s.SetDeadline(t.Context(), 3, "d:1", []byte("1234567890"), time.Hour))
	ok(t, client.Del(t.Context(), s.keys.deadlines(3), s.keys.due(3)).Err())
	ok(t, s.SetDeadline(t.Context(), 3, "d:2", []byte("1234567890"), time.Hour))
	ok(t, client.Del(t.Context(), s.keys.deadlines(3), s.keys.due(3)).Err())

	for range 2 {
		s.appendEvent(t, largeEvent(1, 200))
		ok(t, client.Del(t.Context(), s.keys.outbox(3)).Err())
	}
	s.appendEvent(t, largeEvent(2, 200))
	equal(t, "events", numbers(t, s.take(t, 10)), rangeOf(2, 2))
	equal(t, "dead letters", s.deadLetters(t), nil)

	for n := 3; n < 6; n++ {
		ok(t, client.Del(t.Context(), s.keys.deadLetters(3)).Err())
		s.appendEvent(t, largeEvent(n, 200)) // moves the event before it to the dead letters
	}
	s.appendEvent(t, largeEvent(6, 200))
	equal(t, "dead letters", s.deadLetters(t), []string{"full 4", "full 5"})
	s.advance(t, time.Hour) // the lease above expires
	for range 2 {
		b := s.take(t, 1)
		ok(t, client.Del(t.Context(), s.keys.deadLetters(3)).Err())
		ok(t, s.Refused(t.Context(), b, b.Events[0].Seq, Refused, 0))
		s.appendEvent(t, largeEvent(7, 200))
	}
	s.appendEvent(t, largeEvent(8, 200))
	equal(t, "dead letters", s.deadLetters(t), []string{"refused 7", "full 7"})
}

// TestForeignTracked checks that a channel is tracked again if the store has a foreign record of
// it.
func TestForeignTracked(t *testing.T) {
	s := openRedis(t)
	s.scheduleFields(t, true, 1)
	ok(t, s.client(t).HSet(t.Context(), s.keys.fields(3), "f:x", "foreign").Err())
	claim := s.claims(t, 3)[0]
	if _, err := parseTracked(string(claim.Record)); err == nil {
		t.Fatal("the foreign record is valid")
	}
	equal(t, "valid", s.settleX(t, FieldsResult{Claim: Claim{Entry: claim.Entry, Token: claim.Token}}), false)
	equal(t, "due", s.due(t, 3), nil)
	_, _, found := s.trackedX(t)
	equal(t, "tracked", found, false)
	s.scheduleFields(t, true, 1)
	equal(t, "valid", s.settleX(t, s.claimX(t)), true)
}

// TestForeignData checks that foreign values in the keys make errors and no panics.
func TestForeignData(t *testing.T) {
	s := openRedis(t)
	client := s.client(t)
	ctx := t.Context()
	for _, c := range []struct {
		name string
		key  string
		call func(context.Context) error
	}{
		{"claim", s.keys.due(3), func(ctx context.Context) error { _, err := s.Claim(ctx, 3, 1, claimTTL); return err }},
		{"schedule", s.keys.due(3), func(ctx context.Context) error { return s.scheduleOne(ctx, 3, "u:x", 0) }},
		{"set deadline", s.keys.deadlines(3), func(ctx context.Context) error { return s.SetDeadline(ctx, 3, "d:x", []byte("{}"), 1) }},
		{"reported present", s.keys.reported(3), func(ctx context.Context) error { _, _, err := s.ReportedPresent(ctx, 3, "", 1); return err }},
		{"schedule fields", s.keys.fields(3), func(ctx context.Context) error {
			return s.Store.ScheduleFields(ctx, true, FieldsCheck{Check{3, "f:x"}, 1})[0]
		}},
		{"settle fields", s.keys.fields(3), func(ctx context.Context) error {
			_, err := s.SettleFields(ctx, 3, FieldsResult{Claim: Claim{Entry: "f:x", Token: "1"}})
			return err
		}},
		{"tracked channels", s.keys.fields(3), func(ctx context.Context) error {
			_, _, err := s.TrackedChannels(ctx, 3, "", 1)
			return err
		}},
		{"take", s.keys.outbox(3), func(ctx context.Context) error { _, err := s.Take(ctx, 3, 1, claimTTL); return err }},
		{"dead letters", s.keys.deadLetters(3), func(ctx context.Context) error { _, err := s.DeadLetters(ctx, 3, 0, 1); return err }},
		{"requeue", s.keys.deadLetters(3), func(ctx context.Context) error { _, err := s.Requeue(ctx, 3, 1); return err }},
	} {
		ok(t, client.Set(ctx, c.key, "foreign", time.Minute).Err())
		if c.call(ctx) == nil {
			t.Errorf("%s: no error", c.name)
		}
		ok(t, client.Del(ctx, c.key).Err())
	}
	ok(t, client.Set(ctx, s.keys.reported(3), "foreign", time.Minute).Err())
	errs := s.Store.Schedule(ctx, 0, Check{3, "u:x"}, Check{4, "u:y"})
	if errs[0] == nil || errs[1] != nil {
		t.Errorf("errors of a shard with a foreign value and of another shard: %v", errs)
	}
	ok(t, client.Del(ctx, s.keys.reported(3)).Err())
	ok(t, client.RPush(ctx, s.keys.outbox(3), "no sequence number").Err())
	if _, err := s.Take(ctx, 3, 1, claimTTL); err == nil {
		t.Error("Take of an invalid element: no error")
	}
	ok(t, client.RPush(ctx, s.keys.deadLetters(3), "no reason").Err())
	if _, err := s.DeadLetters(ctx, 3, 0, 1); err == nil {
		t.Error("DeadLetters of an invalid element: no error")
	}
	if _, _, err := s.ReportedPresent(ctx, 3, "x", 1); err == nil {
		t.Error("ReportedPresent with an invalid cursor: no error")
	}
}
