package queue

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

func testChannelIDs(t *testing.T, open opener) {
	f := open(t, Options{})
	var last int64
	for i := range 20 {
		a := must(f.AppendChannel(t.Context(), ChannelPush{Channel: "news", Data: []byte(`{"same":true}`)}))(t)
		equal(t, "prev", a.Prev, last)
		if a.ID <= last || a.ID > maxID {
			t.Fatalf("id %d follows %d", a.ID, last)
		}
		last = a.ID
		equal(t, "size", must(f.ChannelSize(t.Context(), "news"))(t), i+1)
	}
	p := must(f.ReadChannel(t.Context(), "news", 0, 100))(t)
	equal(t, "messages", len(p.Messages), 20)
	equal(t, "data", string(p.Messages[7].Data), `{"same":true}`)
	equal(t, "last", p.Last, last)
	equal(t, "floor", p.Floor, 0)
	equal(t, "size of another", must(f.ChannelSize(t.Context(), "other"))(t), 0)
}

func testConcurrentChannelAppends(t *testing.T, open opener) {
	f := open(t, Options{})
	testPrev(t, func() (id, prev int64, err error) {
		a, err := f.AppendChannel(t.Context(), ChannelPush{Channel: "news", Data: []byte("1")})
		return a.ID, a.Prev, err
	})
}

// testPrev appends concurrently and checks that each append returns the id before its own.
func testPrev(t *testing.T, appendOne func() (id, prev int64, err error)) {
	t.Helper()
	var (
		wg sync.WaitGroup
		mu sync.Mutex // guards prevs
	)
	prevs := make(map[int64]int64)
	for range 8 {
		wg.Go(func() {
			for range 25 {
				id, prev, err := appendOne()
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				prevs[id] = prev
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	equal(t, "different ids", len(prevs), 200)
	var before int64
	for _, id := range sortedKeys(prevs) {
		equal(t, "prev", prevs[id], before)
		before = id
	}
}

func sortedKeys(m map[int64]int64) []int64 {
	ids := make([]int64, 0, len(m))
	for id := range m {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func testChannelServers(t *testing.T, open opener) {
	f := open(t, Options{})
	a := must(f.AppendChannel(t.Context(), ChannelPush{Channel: "news", Data: []byte("1")}))(t)
	equal(t, "servers without subscribers", len(a.Servers), 0)
	f.setServers(t, "news", "b1", "b2")
	for _, key := range []string{"", "k", "k"} {
		a = must(f.AppendChannel(t.Context(), ChannelPush{Channel: "news", Data: []byte("1"), Key: key}))(t)
		slices.Sort(a.Servers)
		if !slices.Equal(a.Servers, []string{"b1", "b2"}) {
			t.Errorf("servers with key %q: %v", key, a.Servers)
		}
	}
}

func testChannelIdempotency(t *testing.T, open opener) {
	f := open(t, Options{})
	first := must(f.AppendChannel(t.Context(), ChannelPush{Channel: "news", Data: []byte("1"), Key: "k"}))(t)
	equal(t, "first is a duplicate", first.Duplicate, false)
	again := must(f.AppendChannel(t.Context(), ChannelPush{Channel: "news", Data: []byte("2"), Key: "k"}))(t)
	equal(t, "second is a duplicate", again.Duplicate, true)
	equal(t, "id of the duplicate", again.ID, first.ID)
	equal(t, "prev of the duplicate", again.Prev, 0)
	equal(t, "size", must(f.ChannelSize(t.Context(), "news"))(t), 1)

	for _, other := range []struct{ channel, key string }{{"news", "k2"}, {"sport", "k"}} {
		a := must(f.AppendChannel(t.Context(), ChannelPush{Channel: other.channel, Data: []byte("3"), Key: other.key}))(t)
		equal(t, fmt.Sprint(other), a.Duplicate, false)
	}
	f.expire(t, f.opts.KeyTTL, f.keys.channelKey("news", "k"))
	later := must(f.AppendChannel(t.Context(), ChannelPush{Channel: "news", Data: []byte("4"), Key: "k"}))(t)
	equal(t, "after KeyTTL", later.Duplicate, false)
}

func testChannelCountCap(t *testing.T, open opener) {
	f := open(t, Options{ChannelCap: 3})
	ids := push(t, f, "news", 5)
	p := must(f.ReadChannel(t.Context(), "news", 0, 10))(t)
	wantIDs(t, "held", p, ids[2:])
	equal(t, "floor", p.Floor, ids[1])
	equal(t, "last", p.Last, ids[4])
}

// testChannelOwnBounds makes pushes with Cap and TTL.
func testChannelOwnBounds(t *testing.T, open opener) {
	f := open(t, Options{ChannelCap: 4})
	push1 := func(channel string, cap int, ttl time.Duration) int64 {
		return must(f.AppendChannel(t.Context(), ChannelPush{Channel: channel, Data: []byte("1"), Cap: cap, TTL: ttl}))(t).ID
	}
	ids := push(t, f, "news", 3)
	newest := push1("news", 2, 0)
	p := must(f.ReadChannel(t.Context(), "news", 0, 10))(t)
	wantIDs(t, "held under a lower cap", p, []int64{ids[2], newest})
	equal(t, "floor", p.Floor, ids[1])
	for range 5 {
		push1("news", 100, 0)
	}
	p = must(f.ReadChannel(t.Context(), "news", 0, 10))(t)
	equal(t, "held under a higher cap", len(p.Messages), 4)

	last := push1("brief", 0, f.opts.ChannelTTL/4)
	f.expire(t, f.opts.ChannelTTL/3, f.keys.channel("brief"))
	p = must(f.ReadChannel(t.Context(), "brief", 0, 10))(t)
	wantIDs(t, "expired", p, nil)
	equal(t, "last", p.Last, last)
	long := push1("long", 0, 2*f.opts.ChannelTTL)
	f.expire(t, f.opts.ChannelTTL*3/2, f.keys.channel("news"))
	p = must(f.ReadChannel(t.Context(), "long", 0, 10))(t)
	wantIDs(t, "kept longer", p, []int64{long})
}

func testChannelByteCap(t *testing.T, open opener) {
	data := func(size int) []byte { return append(append([]byte{'"'}, bytes.Repeat([]byte("x"), size-2)...), '"') }
	f := open(t, Options{ChannelMaxBytes: 1000})
	var ids []int64
	for range 4 { // 300 and the id are 316 bytes: three of them fit
		ids = append(ids, must(f.AppendChannel(t.Context(), ChannelPush{Channel: "news", Data: data(300)}))(t).ID)
	}
	p := must(f.ReadChannel(t.Context(), "news", 0, 10))(t)
	wantIDs(t, "held", p, ids[1:])
	equal(t, "floor", p.Floor, ids[0])

	large := must(f.AppendChannel(t.Context(), ChannelPush{Channel: "news", Data: data(5000)}))(t)
	p = must(f.ReadChannel(t.Context(), "news", 0, 10))(t)
	wantIDs(t, "a single message above the cap", p, []int64{large.ID})
	equal(t, "floor", p.Floor, ids[3])

	small := must(f.AppendChannel(t.Context(), ChannelPush{Channel: "news", Data: data(300)}))(t)
	next := must(f.AppendChannel(t.Context(), ChannelPush{Channel: "news", Data: data(300)}))(t)
	p = must(f.ReadChannel(t.Context(), "news", 0, 10))(t)
	wantIDs(t, "the large one is dropped", p, []int64{small.ID, next.ID})
}

func testChannelRecovery(t *testing.T, open opener) {
	capped := open(t, Options{ChannelCap: 3})
	dropped := push(t, capped, "news", 5)
	whole := open(t, Options{})
	held := push(t, whole, "news", 3)

	for _, c := range []struct {
		name     string
		store    fixture
		channel  string
		after    int64
		complete bool
		from     int64
		want     []int64
	}{
		{"a new channel", whole, "empty", 0, true, 0, nil},
		{"an id in an empty channel", whole, "empty", 77, false, 0, nil},
		{"from the beginning", whole, "news", 0, true, 0, held},
		{"an id held", whole, "news", held[0], true, held[0], held[1:]},
		{"the last id", whole, "news", held[2], true, held[2], nil},
		{"an id never assigned, between", whole, "news", held[0] - 1, false, 0, held},
		{"an id above the last", whole, "news", held[2] + 1, false, held[2], nil},
		{"from the beginning, trimmed", capped, "news", 0, false, dropped[1], dropped[2:]},
		{"below the floor", capped, "news", dropped[0], false, dropped[1], dropped[2:]},
		{"the floor", capped, "news", dropped[1], true, dropped[1], dropped[2:]},
		{"above the floor", capped, "news", dropped[2], true, dropped[2], dropped[3:]},
	} {
		p := must(c.store.ReadChannel(t.Context(), c.channel, c.after, 10))(t)
		equal(t, c.name+": complete", p.Complete, c.complete)
		equal(t, c.name+": more", p.More, false)
		equal(t, c.name+": from", p.From, c.from)
		wantIDs(t, c.name, p, c.want)

		position := must(c.store.ReadChannel(t.Context(), c.channel, c.after, 0))(t)
		equal(t, c.name+": complete with limit 0", position.Complete, c.complete)
		equal(t, c.name+": last with limit 0", position.Last, p.Last)
		equal(t, c.name+": floor with limit 0", position.Floor, p.Floor)
		equal(t, c.name+": messages with limit 0", len(position.Messages), 0)
	}
}

func testChannelPagesByCount(t *testing.T, open opener) {
	f := open(t, Options{})
	ids := push(t, f, "news", 200)
	for _, limit := range []int{1, 63, 64, 65, 199, 200, 201, maxPage + 1} {
		p := must(f.ReadChannel(t.Context(), "news", 0, limit))(t)
		wantIDs(t, fmt.Sprintf("limit %d", limit), p, ids[:min(limit, 200)])
		equal(t, fmt.Sprintf("limit %d: more", limit), p.More, limit < 200)
	}
	var got []int64
	for p := (Page{More: true}); p.More; {
		var after int64
		if len(got) > 0 {
			after = got[len(got)-1]
		}
		p = must(f.ReadChannel(t.Context(), "news", after, 30))(t)
		equal(t, "complete", p.Complete, true)
		got = append(got, idsOf(p.Messages)...)
	}
	if !slices.Equal(got, ids) {
		t.Errorf("page by page: %d of %d", len(got), len(ids))
	}
}

func testChannelPagesByBytes(t *testing.T, open opener) {
	f := open(t, Options{ChannelMaxBytes: 8 * MaxPageBytes})
	third := append(append([]byte{'"'}, bytes.Repeat([]byte("x"), MaxPageBytes/3)...), '"')
	double := append(append([]byte{'"'}, bytes.Repeat([]byte("x"), MaxPageBytes*2)...), '"')
	var ids []int64
	for _, data := range [][]byte{third, third, third, double, third} {
		ids = append(ids, must(f.AppendChannel(t.Context(), ChannelPush{Channel: "news", Data: data}))(t).ID)
	}
	for _, c := range []struct {
		after int64
		want  []int64
		more  bool
	}{
		{0, ids[:2], true},
		{ids[1], ids[2:3], true},
		{ids[2], ids[3:4], true}, // larger than a page, alone
		{ids[3], ids[4:], false},
	} {
		p := must(f.ReadChannel(t.Context(), "news", c.after, 100))(t)
		wantIDs(t, "page", p, c.want)
		equal(t, "more", p.More, c.more)
	}
}

func testChannelExpiry(t *testing.T, open opener) {
	f := open(t, Options{})
	ids := push(t, f, "news", 3)
	f.expire(t, f.opts.ChannelTTL, f.keys.channel("news"))

	p := must(f.ReadChannel(t.Context(), "news", ids[0], 10))(t)
	wantIDs(t, "expired", p, nil)
	equal(t, "floor", p.Floor, ids[2])
	equal(t, "last", p.Last, ids[2])
	equal(t, "complete below", p.Complete, false)
	equal(t, "complete at the end", must(f.ReadChannel(t.Context(), "news", ids[2], 10))(t).Complete, true)

	a := must(f.AppendChannel(t.Context(), ChannelPush{Channel: "news", Data: []byte("4")}))(t)
	equal(t, "prev", a.Prev, ids[2])
	p = must(f.ReadChannel(t.Context(), "news", 0, 10))(t)
	wantIDs(t, "after the next append", p, []int64{a.ID})
	equal(t, "floor after the next append", p.Floor, ids[2])
	equal(t, "complete after the next append", p.Complete, false)
}

func testTrimByCount(t *testing.T, open opener) {
	f := open(t, Options{})
	ids := push(t, f, "news", 5)
	trim := func(count int, dry bool) int {
		t.Helper()
		return must(f.TrimChannel(t.Context(), "news", time.Hour, count, dry))(t)
	}
	equal(t, "few enough", trim(5, false), 0)
	equal(t, "dry run", trim(2, true), 3)
	equal(t, "size after the dry run", must(f.ChannelSize(t.Context(), "news"))(t), 5)
	equal(t, "trimmed", trim(2, false), 3)
	p := must(f.ReadChannel(t.Context(), "news", 0, 10))(t)
	wantIDs(t, "newest", p, ids[3:])
	equal(t, "floor", p.Floor, ids[2])
	equal(t, "trimmed again", trim(2, false), 0)
	equal(t, "no channel", must(f.TrimChannel(t.Context(), "empty", time.Hour, 2, false))(t), 0)

	many := push(t, f, "many", trimChunk+20)
	equal(t, "more than one chunk", must(f.TrimChannel(t.Context(), "many", time.Hour, 10, false))(t), len(many)-10)
	equal(t, "kept", must(f.ChannelSize(t.Context(), "many"))(t), 10)
}

func testTrimByAge(t *testing.T, open opener) {
	f := open(t, Options{})
	ids := push(t, f, "news", 3)
	// All messages are younger than an hour, and older than minus one hour.
	equal(t, "young", must(f.TrimChannel(t.Context(), "news", time.Hour, 10, false))(t), 0)
	equal(t, "dry run", must(f.TrimChannel(t.Context(), "news", -time.Hour, 10, true))(t), 3)
	equal(t, "old", must(f.TrimChannel(t.Context(), "news", -time.Hour, 10, false))(t), 3)
	p := must(f.ReadChannel(t.Context(), "news", ids[2], 10))(t)
	wantIDs(t, "nothing", p, nil)
	equal(t, "floor", p.Floor, ids[2])
	equal(t, "complete", p.Complete, true)
	equal(t, "prev", must(f.AppendChannel(t.Context(), ChannelPush{Channel: "news", Data: []byte("4")}))(t).Prev, ids[2])
}
