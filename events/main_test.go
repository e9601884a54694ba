package events

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
	"switchboard/internal/redistest"
)

// The servers of all tests, started once; every test has a prefix of its own.
var (
	server   *redistest.Server
	cluster  *redistest.Cluster
	prefixes atomic.Int64
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m, &server, &cluster)) }

// fixture is a store as tests see it.
type fixture struct {
	Store
	bound func(bounds)                             // makes these its bounds
	pass  func(t *testing.T, d time.Duration)      // time goes by, for what is due
	older func(t *testing.T, d time.Duration)      // time goes by, for the events in shard 3; nobody has taken any
	raw   func(t *testing.T) redis.UniversalClient // of Redis
	keys  keys

	givenUp int // by events that were told in this test
}

// Changed notes one entry.
func (f *fixture) Changed(ctx context.Context, shard int, entry string, grace time.Duration) error {
	return f.Store.Changed(ctx, grace, Change{shard, entry})[0]
}

type opener func(t *testing.T) *fixture

// eachStore runs a test over every implementation.
func eachStore(t *testing.T, test func(t *testing.T, open opener)) {
	t.Run("memory", func(t *testing.T) { test(t, openMemory) })
	t.Run("redis", func(t *testing.T) { test(t, openRedis) })
	t.Run("cluster", func(t *testing.T) { test(t, openCluster) })
}

func openRedis(t *testing.T) *fixture { return overRedis(server.Client(t)) }

func openCluster(t *testing.T) *fixture { return overRedis(cluster.Client(t)) }

func overRedis(client redis.UniversalClient) *fixture {
	r := NewRedis(redispipe.New(client, redispipe.Options{}), StoreOptions{Prefix: fmt.Sprintf("t%d:", prefixes.Add(1))})
	f := &fixture{
		Store: r, keys: r.keys, bound: func(b bounds) { r.bounds = b },
		raw: func(*testing.T) redis.UniversalClient { return client },
	}
	f.pass = func(t *testing.T, d time.Duration) {
		t.Helper()
		for shard := range Shards {
			age(t, client, r.keys, shard, d)
		}
	}
	f.older = func(t *testing.T, d time.Duration) { t.Helper(); ageEvents(t, client, r.keys, 3, d) }
	return f
}

// age makes what is due in a shard due earlier, which is what time does.
func age(t *testing.T, client redis.UniversalClient, k keys, shard int, d time.Duration) {
	t.Helper()
	ctx, ms := t.Context(), float64(d.Milliseconds())
	due, err := client.ZRangeWithScores(ctx, k.due(shard), 0, -1).Result()
	ok(t, err)
	for _, z := range due {
		z.Score -= ms
		ok(t, client.ZAdd(ctx, k.due(shard), z).Err())
	}
	for _, field := range []string{"until", "retry_at"} {
		at, err := client.HGet(ctx, k.meta(shard), field).Int64()
		if errors.Is(err, redis.Nil) {
			continue
		}
		ok(t, err)
		if at > 0 {
			ok(t, client.HSet(ctx, k.meta(shard), field, at-d.Milliseconds()).Err())
		}
	}
}

// ageEvents gives events the places that they would have got earlier.
func ageEvents(t *testing.T, client redis.UniversalClient, k keys, shard int, d time.Duration) {
	t.Helper()
	ctx := t.Context()
	out, err := client.LRange(ctx, k.out(shard), 0, -1).Result()
	ok(t, err)
	for i, event := range out {
		var place int64
		_, err := fmt.Sscanf(event, "%d:", &place)
		ok(t, err)
		old := fmt.Sprintf("%d:%s", place-d.Milliseconds()*placesPerMS, event[len(decimal(place))+1:])
		ok(t, client.LSet(ctx, k.out(shard), int64(i), old).Err())
	}
}

func openMemory(*testing.T) *fixture {
	c := &clock{now: time.Date(2026, 11, 5, 12, 0, 0, 0, time.UTC)}
	m := NewMemory(StoreOptions{Now: c.Now})
	pass := func(_ *testing.T, d time.Duration) { c.advance(d) }
	return &fixture{Store: m, bound: func(b bounds) { m.bounds = b }, pass: pass, older: pass}
}

// clock is a time that tests move.
type clock struct {
	mu  sync.Mutex // guards the field below
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func fails(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got error %v, want %v", what, err, want)
	}
}

// equal compares what prints alike: nil is as good as an empty slice.
func equal(t testing.TB, what string, got, want any) {
	t.Helper()
	if want == nil {
		want = []string{}
	}
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s: got %s, want %s", what, g, w)
	}
}
