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

// TestEveryKeyIsBounded does all that there is to do, over a Redis of its own, and walks the keyspace.
func TestEveryKeyIsBounded(t *testing.T) {
	own := redistest.Start(t)
	client := own.Client(t)
	r := NewRedis(redispipe.New(client, redispipe.Options{}), StoreOptions{})
	f := &fixture{Store: r, keys: r.keys, pass: func(t *testing.T, d time.Duration) {
		for shard := range Shards {
			age(t, client, r.keys, shard, d)
		}
	}}
	check := func(what string, kinds int) {
		t.Helper()
		count, err := keytable.Check(t.Context(), client)
		if err != nil || len(count) != kinds {
			t.Errorf("%s: %v, %v; want %d kinds of keys", what, count, err, kinds)
		}
	}
	ok(t, f.Changed(t.Context(), 3, "u:ann", Grace))
	check("changed", 1)
	f.changed(t, "u:ann", true)
	check("told", 3)
	f.tell(t, 2)
	check("a watched message was settled", 3)
	ok(t, f.Watch(t.Context(), 3, "d:9", []byte("{}"), time.Hour))
	check("watched", 5)
	b := f.take(t, 1)
	check("taken", 5)
	ok(t, f.Refused(t.Context(), b, b.Events[0].Place, Refused, 0))
	check("refused", 6)
	b = f.take(t, 1)
	_, err := f.Failed(t.Context(), b, b.Events[0].Place, 0, time.Hour)
	ok(t, err)
	b = f.take(t, 10)
	ok(t, f.Sent(t.Context(), b, b.Events[len(b.Events)-1].Place, 0))
	_, err = f.Retry(t.Context(), 3, 10)
	ok(t, err)
	check("sent and retried", 5)
}

// TestAppointmentAtTheEndOfAClaim: it ends the claim although both are at the same millisecond.
func TestAppointmentAtTheEndOfAClaim(t *testing.T) {
	f := openRedis(t)
	ok(t, f.Changed(t.Context(), 3, "u:ann", 0))
	claim := f.claims(t, 3)[0]
	end, err := strconv.ParseFloat(claim.Token, 64)
	ok(t, err)
	ok(t, f.raw(t).ZAdd(t.Context(), f.keys.due(3), redis.Z{Score: math.Floor(end), Member: "u:ann"}).Err())
	done, err := f.Settle(t.Context(), 3, Verdict{Claim: claim, Present: true})
	ok(t, err)
	equal(t, "valid", done.Valid, false)
}

// TestToldStays: who is present for long is told so still, though nothing changes.
func TestToldStays(t *testing.T) {
	f := openRedis(t)
	client := f.raw(t)
	f.changed(t, "u:ann", true)
	ok(t, client.PExpire(t.Context(), f.keys.told(3), time.Hour).Err())
	_, _, err := f.Told(t.Context(), 3, "", 10)
	ok(t, err)
	if left := client.PTTL(t.Context(), f.keys.told(3)).Val(); left < Retention/2 {
		t.Errorf("it has %v left", left)
	}
}

// TestCountersOfWhatExpired: bytes that are counted of keys that are no more make no list full.
func TestCountersOfWhatExpired(t *testing.T) {
	f := openRedis(t)
	f.bound(bounds{due: 100, watchBytes: 10, out: 100, outBytes: 300, dead: 100, deadBytes: 600})
	client := f.raw(t)
	ok(t, f.Watch(t.Context(), 3, "d:1", []byte("1234567890"), time.Hour))
	ok(t, client.Del(t.Context(), f.keys.watch(3), f.keys.due(3)).Err())
	ok(t, f.Watch(t.Context(), 3, "d:2", []byte("1234567890"), time.Hour))
	ok(t, client.Del(t.Context(), f.keys.watch(3), f.keys.due(3)).Err())

	for range 2 {
		f.tellOne(t, long(1, 200))
		ok(t, client.Del(t.Context(), f.keys.out(3)).Err())
	}
	f.tellOne(t, long(2, 200))
	equal(t, "events", numbers(t, f.take(t, 10)), seq(2, 2))
	equal(t, "dead letters", f.dead(t), nil)

	for n := 3; n < 6; n++ {
		ok(t, client.Del(t.Context(), f.keys.dead(3)).Err())
		f.tellOne(t, long(n, 200)) // pushes out the one before
	}
	f.tellOne(t, long(6, 200))
	equal(t, "dead letters", f.dead(t), []string{"full 4", "full 5"})
	f.pass(t, time.Hour) // the lease from above
	for range 2 {
		b := f.take(t, 1)
		ok(t, client.Del(t.Context(), f.keys.dead(3)).Err())
		ok(t, f.Refused(t.Context(), b, b.Events[0].Place, Refused, 0))
		f.tellOne(t, long(7, 200))
	}
	f.tellOne(t, long(8, 200))
	equal(t, "dead letters", f.dead(t), []string{"refused 7", "full 7"})
}

// TestRepliesThatAreNone: another's key in the place of ours is an error, and no panic.
func TestRepliesThatAreNone(t *testing.T) {
	f := openRedis(t)
	client := f.raw(t)
	ctx := t.Context()
	for _, c := range []struct {
		name string
		key  string
		call func(context.Context) error
	}{
		{"claim", f.keys.due(3), func(ctx context.Context) error { _, err := f.Claim(ctx, 3, 1, hold); return err }},
		{"changed", f.keys.due(3), func(ctx context.Context) error { return f.Changed(ctx, 3, "u:x", 0) }},
		{"watch", f.keys.watch(3), func(ctx context.Context) error { return f.Watch(ctx, 3, "d:x", []byte("{}"), 1) }},
		{"told", f.keys.told(3), func(ctx context.Context) error { _, _, err := f.Told(ctx, 3, "", 1); return err }},
		{"take", f.keys.out(3), func(ctx context.Context) error { _, err := f.Take(ctx, 3, 1, hold); return err }},
		{"dead", f.keys.dead(3), func(ctx context.Context) error { _, err := f.Dead(ctx, 3, 0, 1); return err }},
		{"retry", f.keys.dead(3), func(ctx context.Context) error { _, err := f.Retry(ctx, 3, 1); return err }},
	} {
		ok(t, client.Set(ctx, c.key, "not ours", time.Minute).Err())
		if c.call(ctx) == nil {
			t.Errorf("%s: no error", c.name)
		}
		ok(t, client.Del(ctx, c.key).Err())
	}
	ok(t, client.Set(ctx, f.keys.told(3), "not ours", time.Minute).Err())
	errs := f.Store.Changed(ctx, 0, Change{3, "u:x"}, Change{4, "u:y"})
	if errs[0] == nil || errs[1] != nil {
		t.Errorf("changes in a shard whose key is not ours, and in another: %v", errs)
	}
	ok(t, client.Del(ctx, f.keys.told(3)).Err())
	ok(t, client.RPush(ctx, f.keys.out(3), "no place").Err())
	if _, err := f.Take(ctx, 3, 1, hold); err == nil {
		t.Error("an element that is no event: no error")
	}
	ok(t, client.RPush(ctx, f.keys.dead(3), "no letter").Err())
	if _, err := f.Dead(ctx, 3, 0, 1); err == nil {
		t.Error("an element that is no dead letter: no error")
	}
	if _, _, err := f.Told(ctx, 3, "x", 1); err == nil {
		t.Error("a cursor that is none: no error")
	}
}
