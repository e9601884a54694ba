package queue

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
	"switchboard/internal/redistest"
)

// The tests in this file are for Redis only: TTLs of keys, other writers, a full memory.

func TestRedisTTLs(t *testing.T) {
	client := server.Client(t)
	f := overRedis(client, Options{})
	ttl := func(key string) time.Duration {
		t.Helper()
		return must(client.PTTL(t.Context(), key).Result())(t)
	}
	// A TTL that was just set is at most an eighth longer than the minimum. The TTL of a record may
	// also include the eighth of its list.
	want := func(key string, d time.Duration) {
		t.Helper()
		if got := ttl(key); got > d+d/8+20*time.Minute || got < d-time.Minute {
			t.Errorf("%s lives %v, want %v", key, got, d)
		}
	}
	must(f.AppendChannel(t.Context(), ChannelPush{Channel: "news", Data: []byte("1"), Key: "k"}))(t)
	want(f.keys.channel("news"), time.Hour)
	want(f.keys.channelMeta("news"), 7*time.Hour)
	want(f.keys.channelKey("news", "k"), 10*time.Minute)

	must(f.AppendChannel(t.Context(), ChannelPush{Channel: "long", Data: []byte("1"), TTL: 24 * time.Hour}))(t)
	want(f.keys.channel("long"), 24*time.Hour)
	want(f.keys.channelMeta("long"), 30*time.Hour)
	must(f.AppendChannel(t.Context(), ChannelPush{Channel: "longest", Data: []byte("1"), TTL: 1000 * time.Hour}))(t)
	want(f.keys.channel("longest"), 30*24*time.Hour)

	must(f.AppendClient(t.Context(), ClientPush{Client: "phone", Data: []byte("1"), Key: "k"}))(t)
	want(f.keys.list("phone"), time.Hour)
	want(f.keys.record("phone"), 150*time.Minute)
	want(f.keys.clientKey("phone", "k"), 10*time.Minute)
	must(f.AppendClient(t.Context(), ClientPush{Client: "phone", Data: []byte("1"), TTL: 24 * time.Hour}))(t)
	send(t, f, "phone", 1)
	want(f.keys.list("phone"), 24*time.Hour)
	want(f.keys.record("phone"), 24*time.Hour)
	g := bound(t, f, "phone")
	want(f.keys.record("phone"), 24*time.Hour)
	ok(t, f.Refresh(t.Context(), "b1", HeldClient{Client: "phone", User: "alice", Generation: g}))
	want(f.keys.record("phone"), 24*time.Hour)

	g = bound(t, f, "tablet")
	want(f.keys.record("tablet"), 150*time.Minute)
	ok(t, client.HSet(t.Context(), f.keys.record("tablet"), "until", 0).Err())
	ok(t, f.Refresh(t.Context(), "b1", HeldClient{Client: "tablet", User: "alice", Generation: g}))
	want(f.keys.record("tablet"), 300*time.Minute)
	ok(t, client.Del(t.Context(), f.keys.record("tablet")).Err())
	ok(t, f.Refresh(t.Context(), "b1", HeldClient{Client: "tablet", User: "alice", Generation: g}))
	want(f.keys.record("tablet"), 300*time.Minute)

	// A channel of another writer has no position until it is trimmed.
	ok(t, client.ZAdd(t.Context(), f.keys.channel("foreign"), redis.Z{Score: 5, Member: "5:1"}).Err())
	must(f.TrimChannel(t.Context(), "foreign", time.Hour, 10, false))(t)
	want(f.keys.channelMeta("foreign"), 6*time.Hour)
}

func TestRedisIDsFollowTheClock(t *testing.T) {
	client := server.Client(t)
	f := overRedis(client, Options{})
	before := must(client.Time(t.Context()).Result())(t).UnixMilli()
	channel := push(t, f, "news", 1)[0]
	list := send(t, f, "phone", 1)[0]
	generation := bound(t, f, "phone")
	after := must(client.Time(t.Context()).Result())(t).UnixMilli()
	for _, id := range []int64{channel, list, generation} {
		if ms := id/idsPerMS + epochMS; ms < before || ms > after {
			t.Errorf("id %d is of %d, assigned between %d and %d", id, ms, before, after)
		}
	}
}

func TestRedisChannelWithOtherWriters(t *testing.T) {
	client := server.Client(t)
	f := overRedis(client, Options{})
	ids := push(t, f, "news", 1)
	key := f.keys.channel("news")
	add := func(score float64, member string) {
		t.Helper()
		ok(t, client.ZAdd(t.Context(), key, redis.Z{Score: score, Member: member}).Err())
	}
	foreign := ids[0] + 1<<40 // ahead of the clock
	add(float64(foreign), fmt.Sprintf(`%d:{"by":"backend"}`, foreign))
	for i := range 2000 { // more than one run of the script skips
		add(float64(foreign+1)+float64(i), fmt.Sprintf("%d", i))
	}
	for i, member := range []string{"", ":", "x:1", "7:1", fmt.Sprintf("%d:{", foreign+3000), fmt.Sprintf("%d:\n1", foreign+3000)} {
		add(float64(foreign+3000), member)
		add(float64(foreign)+3000.5, fmt.Sprintf("half %d", i))
	}
	ok(t, client.Do(t.Context(), "ZADD", key, "-inf", "low", "+inf", "high", "-3", "-3:1").Err())

	a := must(f.AppendChannel(t.Context(), ChannelPush{Channel: "news", Data: []byte("2")}))(t)
	equal(t, "prev", a.Prev, foreign+3000)
	equal(t, "id", a.ID, foreign+3001)
	p := must(f.ReadChannel(t.Context(), "news", 0, 10))(t)
	wantIDs(t, "a page ends before thousands of malformed members", p, []int64{ids[0], foreign})
	equal(t, "more", p.More, true)
	p = must(f.ReadChannel(t.Context(), "news", foreign, 10))(t)
	wantIDs(t, "after them", p, []int64{a.ID})
	equal(t, "more after them", p.More, false)
	must(f.TrimChannel(t.Context(), "news", time.Hour, 2, false))(t)
	p = must(f.ReadChannel(t.Context(), "news", 0, 10))(t)
	wantIDs(t, "trimmed", p, []int64{a.ID})
	equal(t, "floor", p.Floor, foreign+3000)
}

// TestRedisChannelWithoutPosition reads a channel that only another writer wrote: the last id is
// that of the last message.
func TestRedisChannelWithoutPosition(t *testing.T) {
	client := server.Client(t)
	f := overRedis(client, Options{})
	const n = 200
	for i := range n {
		ok(t, client.ZAdd(t.Context(), f.keys.channel("news"), redis.Z{Score: float64(1 + i), Member: fmt.Sprintf("%d:0", 1+i)}).Err())
	}
	for _, c := range []struct {
		after int64
		limit int
		got   int
	}{{0, 0, 0}, {0, 1, 1}, {0, 61, 61}, {0, n, n}, {5, 62, 62}, {n - 3, 1, 1}, {n - 3, 2, 2}, {n - 3, 10, 3}, {n, 10, 0}, {n, 0, 0}, {n + 7, 10, 0}} {
		p := must(f.ReadChannel(t.Context(), "news", c.after, c.limit))(t)
		what := fmt.Sprintf("%d after %d", c.limit, c.after)
		equal(t, what+": last", p.Last, int64(n))
		equal(t, what+": messages", len(p.Messages), c.got)
		equal(t, what+": more", p.More, min(c.after, n)+int64(c.got) < n)
	}
}

func TestRedisChannelOfMalformedMembersOnly(t *testing.T) {
	client := server.Client(t)
	f := overRedis(client, Options{})
	for i := range 3000 {
		ok(t, client.ZAdd(t.Context(), f.keys.channel("news"), redis.Z{Score: float64(i), Member: fmt.Sprint("m", i)}).Err())
	}
	p := must(f.ReadChannel(t.Context(), "news", 0, 10))(t)
	equal(t, "messages", len(p.Messages), 0)
	equal(t, "more", p.More, false)
	must(f.TrimChannel(t.Context(), "news", time.Hour, 10, false))(t)
	equal(t, "size", must(f.ChannelSize(t.Context(), "news"))(t), 0)
}

func TestRedisListWithOtherWriters(t *testing.T) {
	client := server.Client(t)
	f := overRedis(client, Options{})
	g := bound(t, f, "phone")
	key := f.keys.list("phone")
	for i := range MaxWindow + 50 {
		ok(t, client.RPush(t.Context(), key, fmt.Sprintf("malformed %d", i), fmt.Sprintf("%d:{", i+1)).Err())
	}
	first := send(t, f, "phone", 1)
	foreign := first[0] + 1<<40
	ok(t, client.RPush(t.Context(), key, fmt.Sprintf("%d:2", foreign), "x", "99999999999999999999:3", fmt.Sprintf("%d:4", foreign+1)).Err())

	c, _, err := f.Client(t.Context(), "phone")
	ok(t, err)
	equal(t, "last", c.Last, foreign+1)
	p := must(f.Window(t.Context(), "phone", g, 0, 10))(t)
	wantIDs(t, "window", p, []int64{first[0], foreign, foreign + 1})
	next := must(f.AppendClient(t.Context(), ClientPush{Client: "phone", Data: []byte("5")}))(t)
	equal(t, "id", next.ID, foreign+2)
	equal(t, "prev", next.Prev, foreign+1)
	must(f.Ack(t.Context(), "phone", g, foreign))(t)
	p = must(f.Window(t.Context(), "phone", g, 0, 10))(t)
	wantIDs(t, "acknowledged", p, []int64{foreign + 1, next.ID})
	must(f.Ack(t.Context(), "phone", g, next.ID))(t)
	equal(t, "left", must(client.LLen(t.Context(), key).Result())(t), 0)
	equal(t, "complete", must(f.Window(t.Context(), "phone", g, next.ID, 10))(t).Complete, true)
}

// TestRedisWrongByteCount checks that a wrong number of bytes, which other writers cause, is
// corrected.
func TestRedisWrongByteCount(t *testing.T) {
	client := server.Client(t)
	f := overRedis(client, Options{})
	push(t, f, "news", 3)
	for _, wrong := range []string{"1000000000", "-1000000000"} {
		ok(t, client.HSet(t.Context(), f.keys.channelMeta("news"), "bytes", wrong).Err())
		ids := push(t, f, "news", 3)
		p := must(f.ReadChannel(t.Context(), "news", ids[0]-1, 10))(t)
		wantIDs(t, "after "+wrong, Page{Messages: p.Messages[len(p.Messages)-3:]}, ids)
	}
	bytes := must(client.HGet(t.Context(), f.keys.channelMeta("news"), "bytes").Int64())(t)
	if bytes < 0 {
		t.Errorf("bytes %d", bytes)
	}
}

// TestRedisRenewal checks that a TTL is renewed only if less than the minimum may be left.
func TestRedisRenewal(t *testing.T) {
	client := server.Client(t)
	f := overRedis(client, Options{})
	push(t, f, "news", 1)
	send(t, f, "phone", 1)
	phone := f.keys.record("phone")
	generation := bound(t, f, "phone")
	for _, c := range []struct {
		append           func()
		key, untilKey    string
		minimum, renewed time.Duration
	}{
		{func() { push(t, f, "news", 1) }, f.keys.channel("news"), f.keys.channelMeta("news"), time.Hour, time.Hour},
		{func() { push(t, f, "news", 1) }, f.keys.channelMeta("news"), f.keys.channelMeta("news"), time.Hour, 7 * time.Hour},
		{func() { send(t, f, "phone", 1) }, phone, phone, 150 * time.Minute, 150 * time.Minute},
		{func() {
			ok(t, f.Refresh(t.Context(), "b1", HeldClient{Client: "phone", User: "alice", Generation: generation}))
		}, phone, phone, 150 * time.Minute, 300 * time.Minute},
		{func() { generation = bound(t, f, "phone") }, phone, phone, 150 * time.Minute, 150 * time.Minute},
	} {
		for _, due := range []bool{false, true} {
			ok(t, client.PExpire(t.Context(), c.key, time.Minute).Err())
			left := c.minimum + time.Minute
			if due {
				left = c.minimum - time.Minute
			}
			until := must(client.Time(t.Context()).Result())(t).Add(left)
			ok(t, client.HSet(t.Context(), c.untilKey, "until", until.UnixMilli()).Err())
			c.append()
			lives := must(client.PTTL(t.Context(), c.key).Result())(t)
			if got := lives >= c.renewed-time.Second; got != due {
				t.Errorf("%s lives %v, with until in %v", c.key, lives, left)
			}
		}
	}
	// The TTL of a list is renewed by every push.
	ok(t, client.PExpire(t.Context(), f.keys.list("phone"), time.Minute).Err())
	send(t, f, "phone", 1)
	if lives := must(client.PTTL(t.Context(), f.keys.list("phone")).Result())(t); lives < time.Hour {
		t.Errorf("the list lives %v", lives)
	}
}

// TestRedisFull checks that a full Redis refuses appends, but accepts reads and calls that free
// memory.
func TestRedisFull(t *testing.T) {
	client := redistest.Start(t).Client(t)
	q := NewRedis(redispipe.New(client, redispipe.Options{}), Options{})
	b := must(bind(t.Context(), q, Claim{Client: "phone", User: "alice", Server: "b1"}))(t)
	ids := send(t, q, "phone", 3)
	push(t, q, "news", 3)
	ok(t, client.ConfigSet(t.Context(), "maxmemory", "1").Err())

	for name, refused := range map[string]func() error{
		"append to channel": func() error {
			_, err := q.AppendChannel(t.Context(), ChannelPush{Channel: "news", Data: []byte("1")})
			return err
		},
		"append to client": func() error { _, err := q.AppendClient(t.Context(), ClientPush{Client: "phone"}); return err },
		"push request":     func() error { return q.PushRequest(t.Context(), Request{Data: []byte("1")}) },
	} {
		if err := refused(); err == nil || !strings.Contains(err.Error(), "OOM") || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s: got error %v, want OOM", name, err)
		}
	}
	equal(t, "window", len(must(q.Window(t.Context(), "phone", b.Generation, 0, 10))(t).Messages), 3)
	equal(t, "ack", must(q.Ack(t.Context(), "phone", b.Generation, ids[1]))(t), 2)
	equal(t, "page", len(must(q.ReadChannel(t.Context(), "news", 0, 10))(t).Messages), 3)
	equal(t, "trim", must(q.TrimChannel(t.Context(), "news", time.Hour, 1, false))(t), 2)
	_, _, known, err := q.Release(t.Context(), "phone", "b1")
	ok(t, err)
	equal(t, "release", known, true)
	ok(t, q.Unbind(t.Context(), "phone", b.Generation))
}

// TestRedisBindFindsSubscriptions checks that a bind finds the list of subscriptions that the
// backend has made for a client without a user. Package registry has those of users.
func TestRedisBindFindsSubscriptions(t *testing.T) {
	client := server.Client(t)
	f := overRedis(client, Options{})
	ok(t, client.HSet(t.Context(), f.keys.clientSubscriptions("listed"), "news", "+1").Err())
	ok(t, client.HSet(t.Context(), f.keys.clientSubscriptions("phone"), "news", "+1").Err())
	claims := []Claim{{Client: "listed", Server: "b1"}, {Client: "other", Server: "b1"}, {Client: "phone", User: "alice", Server: "b1"}}
	want := map[string]bool{"listed": true}
	for i := range 40 { // more than one EXISTS of the script has keys
		claims = append(claims, Claim{Client: fmt.Sprint("client-", i), Server: "b1"})
	}
	last := claims[len(claims)-1].Client
	ok(t, client.HSet(t.Context(), f.keys.clientSubscriptions(last), "news", "+1").Err())
	want[last] = true
	for i, o := range f.BindClients(t.Context(), claims) {
		ok(t, o.Err)
		equal(t, "subscribed: "+claims[i].Client, o.Value.Subscribed, want[claims[i].Client])
	}
}
