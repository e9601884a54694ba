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

// The Redis servers are shared by all tests. Each test has its own prefix.
var (
	server  *redistest.Server
	cluster *redistest.Cluster
	unique  atomic.Int64 // makes prefixes and entries unique
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m, &server, &cluster)) }

// testStore is a store with functions that only tests need.
type testStore struct {
	Store
	setLimits func(limits)
	// advance advances the time of due entries, claims and leases.
	advance func(t *testing.T, d time.Duration)
	// ageEvents advances the time of the events in shard 3. They must not be leased.
	ageEvents func(t *testing.T, d time.Duration)
	// ageTracked makes the tracked channels as old as if the time d had passed since they were
	// tracked.
	ageTracked func(t *testing.T, d time.Duration)
	client     func(t *testing.T) redis.UniversalClient // nil for Memory
	keys       keys

	deadLettered int // events that appendEvent has moved to the dead letters
}

// scheduleOne schedules a check of one entry.
func (s *testStore) scheduleOne(ctx context.Context, shard int, entry string, grace time.Duration) error {
	return s.Store.Schedule(ctx, grace, Check{shard, entry})[0]
}

type openFunc func(t *testing.T) *testStore

// eachStore runs a test for each implementation of Store.
func eachStore(t *testing.T, test func(t *testing.T, open openFunc)) {
	t.Run("memory", func(t *testing.T) { test(t, openMemory) })
	t.Run("redis", func(t *testing.T) { test(t, openRedis) })
	t.Run("cluster", func(t *testing.T) { test(t, openCluster) })
}

func openRedis(t *testing.T) *testStore { return overRedis(server.Client(t)) }

func openCluster(t *testing.T) *testStore { return overRedis(cluster.Client(t)) }

func overRedis(client redis.UniversalClient) *testStore {
	r := NewRedis(redispipe.New(client, redispipe.Options{}), StoreOptions{Prefix: fmt.Sprintf("t%d:", unique.Add(1))})
	s := &testStore{
		Store: r, keys: r.keys, setLimits: func(l limits) { r.limits = l },
		client: func(*testing.T) redis.UniversalClient { return client },
	}
	s.advance = func(t *testing.T, d time.Duration) {
		t.Helper()
		for shard := range Shards {
			ageShard(t, client, r.keys, shard, d)
		}
	}
	s.ageEvents = func(t *testing.T, d time.Duration) { t.Helper(); ageEvents(t, client, r.keys, 3, d) }
	s.ageTracked = func(t *testing.T, d time.Duration) {
		t.Helper()
		for shard := range Shards {
			ageTracked(t, client, r.keys, shard, d)
		}
	}
	return s
}

// ageTracked makes the tracked channels of a shard as old as if the time d had passed.
func ageTracked(t *testing.T, client redis.UniversalClient, k keys, shard int, d time.Duration) {
	t.Helper()
	records, err := client.HGetAll(t.Context(), k.fields(shard)).Result()
	ok(t, err)
	for entry, record := range records {
		tracked, err := parseTracked(record)
		ok(t, err)
		tracked.Renewed -= d.Milliseconds()
		ok(t, client.HSet(t.Context(), k.fields(shard), entry, tracked.String()).Err())
	}
}

// ageShard makes the entries and the lease of a shard as old as if the time d had passed.
func ageShard(t *testing.T, client redis.UniversalClient, k keys, shard int, d time.Duration) {
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

// ageEvents lowers the sequence numbers of the events, as if the time d had passed since.
func ageEvents(t *testing.T, client redis.UniversalClient, k keys, shard int, d time.Duration) {
	t.Helper()
	ctx := t.Context()
	out, err := client.LRange(ctx, k.outbox(shard), 0, -1).Result()
	ok(t, err)
	for i, event := range out {
		var seq int64
		_, err := fmt.Sscanf(event, "%d:", &seq)
		ok(t, err)
		old := fmt.Sprintf("%d:%s", seq-d.Milliseconds()*seqsPerMS, event[len(decimal(seq))+1:])
		ok(t, client.LSet(ctx, k.outbox(shard), int64(i), old).Err())
	}
}

func openMemory(*testing.T) *testStore {
	c := &clock{now: time.Date(2026, 11, 5, 12, 0, 0, 0, time.UTC)}
	m := NewMemory(StoreOptions{Now: c.Now})
	advance := func(_ *testing.T, d time.Duration) { c.advance(d) }
	return &testStore{
		Store: m, setLimits: func(l limits) { m.limits = l }, advance: advance, ageEvents: advance,
		ageTracked: func(_ *testing.T, d time.Duration) {
			for shard := range Shards {
				for entry, tracked := range m.shards[shard].fields {
					tracked.Renewed -= d.Milliseconds()
					m.shards[shard].fields[entry] = tracked
				}
			}
		},
	}
}

// clock is a clock that tests advance.
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

// wantError checks that err wraps want.
func wantError(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got error %v, want %v", what, err, want)
	}
}

// equal compares the printed forms of two values. A nil want means an empty slice.
func equal(t testing.TB, what string, got, want any) {
	t.Helper()
	if want == nil {
		want = []string{}
	}
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s: got %s, want %s", what, g, w)
	}
}
