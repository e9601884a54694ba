package budget

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
	"switchboard/internal/redistest"
	"switchboard/internal/wire"
)

// The Redis processes are shared by all tests. Each test has its own prefix.
var (
	single   *redistest.Server
	cluster  *redistest.Cluster
	prefixes atomic.Int64
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m, &single, &cluster)) }

func TestScriptHeaders(t *testing.T) { redistest.CheckScripts(t, single.Client(t), luaFiles) }

// eachStore runs a test over every implementation.
func eachStore(t *testing.T, test func(t *testing.T, s Store)) {
	open := func(client redis.UniversalClient) Store {
		prefix := fmt.Sprintf("t%d:", prefixes.Add(1))
		return NewRedis(redispipe.New(client, redispipe.Options{Timeout: time.Second}), prefix)
	}
	t.Run("memory", func(t *testing.T) { test(t, NewMemory()) })
	t.Run("redis", func(t *testing.T) { test(t, open(single.Client(t))) })
	t.Run("cluster", func(t *testing.T) { test(t, open(cluster.Client(t))) })
}

// TestBudget charges and returns objects of two users, also at the same time.
func TestBudget(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		ctx := t.Context()
		b := New(Options{Store: s, Kind: "rooms", Setting: "kit.rooms.per_user", Most: 5, Ended: func(context.Context, string, []string) ([]string, error) {
			return nil, nil
		}})
		var added atomic.Int32
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				fresh, err := b.Charge(ctx, "amy", fmt.Sprint("r", i))
				if fresh {
					added.Add(1)
				} else if !errors.Is(err, ErrSpent) {
					t.Errorf("charge: %v", err)
				}
			})
		}
		all.Wait()
		if n := added.Load(); n != 5 {
			t.Fatalf("%d of 20 objects were charged", n)
		}
		_, err := b.Charge(ctx, "amy", "more")
		if d, ok := errors.AsType[*wire.DetailedError](err); !ok || d.Err.Code != wire.Full {
			t.Errorf("the error is %v", err)
		}
		objects, err := s.charged(ctx, "amy", "rooms", 0, 0)
		if err != nil || len(objects) != 5 {
			t.Fatalf("the objects are %v, %v", objects, err)
		}
		if fresh, err := b.Charge(ctx, "amy", objects[0]); fresh || err != nil {
			t.Errorf("charged again: %v, %v", fresh, err)
		}
		if _, err := b.Charge(ctx, "bob", "r1"); err != nil {
			t.Errorf("another user: %v", err)
		}
		b.Return(ctx, "amy", objects[0])
		if fresh, err := b.Charge(ctx, "amy", "more"); !fresh || err != nil {
			t.Errorf("after the return: %v, %v", fresh, err)
		}
	})
}

// TestEndedObjectsAreReturned checks that a spent budget forgets objects that do not exist, and not
// those that are being made.
func TestEndedObjectsAreReturned(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		asked := []string{}
		b := New(Options{Store: s, Kind: "rooms", Most: 2, Ended: func(_ context.Context, owner string, objects []string) ([]string, error) {
			asked = append(asked, objects...)
			return []string{"a"}, nil
		}})
		for _, id := range []string{"a", "b"} {
			if _, err := b.Charge(t.Context(), "amy", id); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := b.Charge(t.Context(), "amy", "c"); !errors.Is(err, ErrSpent) || len(asked) != 0 {
			t.Errorf("objects that are being made: %v, asked for %v", err, asked)
		}
		age(t, s, "amy", "rooms")
		if fresh, err := b.Charge(t.Context(), "amy", "c"); !fresh || err != nil {
			t.Errorf("after the end of an object: %v, %v", fresh, err)
		}
		if slices.Sort(asked); !slices.Equal(asked, []string{"a", "b"}) {
			t.Errorf("asked for %v", asked)
		}
	})
}

// TestManyObjects checks that a charge looks at few objects of a spent budget and the next one at
// others, and that what counts or forgets all objects is complete.
func TestManyObjects(t *testing.T) {
	const objects = 1000
	eachStore(t, func(t *testing.T, s Store) {
		looked := map[string]int{}
		most := 0
		gone := ""
		b := New(Options{Store: s, Kind: "rooms", Most: objects, Ended: func(_ context.Context, _ string, objects []string) (ended []string, err error) {
			most = max(most, len(objects))
			for _, id := range objects {
				if looked[id]++; id == gone {
					ended = append(ended, id)
				}
			}
			return ended, nil
		}})
		charge := func(id string) (spent bool) {
			_, err := b.Charge(t.Context(), "amy", id)
			if err != nil && !errors.Is(err, ErrSpent) {
				t.Fatal(err)
			}
			return err != nil
		}
		for i := range objects {
			if charge(fmt.Sprint("r", i)) {
				t.Fatalf("%d objects were charged", i)
			}
		}
		age(t, s, "amy", "rooms")
		for range objects / maxLook {
			if !charge("more") {
				t.Fatal("one more was charged")
			}
		}
		if most > maxLook || len(looked) != objects {
			t.Errorf("%d calls looked at %d of %d objects, %d at once", objects/maxLook, len(looked), objects, most)
		}
		for gone = range looked { // one that has ended without a return
			break
		}
		calls := 1
		for ; charge("more") && calls < objects/maxLook; calls++ {
		}
		if all, err := b.Objects(t.Context(), "amy"); err != nil || len(all) != objects || !slices.Contains(all, "more") || slices.Contains(all, gone) {
			t.Errorf("after %d calls %d objects, %v", calls, len(all), err)
		}
		age(t, s, "amy", "rooms")
		gone, most = "more", 0
		if used, _, err := b.Usage(t.Context(), "amy"); used != objects-1 || err != nil || most > maxLook {
			t.Errorf("%d are used, %v; %d looked at at once", used, err, most)
		}
		if err := b.Forget(t.Context(), "amy"); err != nil {
			t.Fatal(err)
		}
		if all, err := b.Objects(t.Context(), "amy"); len(all) > 0 || err != nil {
			t.Errorf("after Forget: %d objects, %v", len(all), err)
		}
	})
}

// TestPostpone checks that an object that was looked at does not become older, and not charged
// again.
func TestPostpone(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		charge := func(id string) {
			if _, err := s.charge(t.Context(), "amy", "rooms", id, 10, keep); err != nil {
				t.Fatal(err)
			}
		}
		charge("old")
		age(t, s, "amy", "rooms")
		charge("new")
		if err := s.postpone(t.Context(), "amy", "rooms", settle, "old", "new", "none"); err != nil {
			t.Fatal(err)
		}
		for age, want := range map[time.Duration][]string{0: {"old", "new"}, settle: {"old"}, 2 * settle: {}} {
			if got, err := s.charged(t.Context(), "amy", "rooms", age, 0); err != nil || !slices.Equal(got, want) {
				t.Errorf("%v ago: %v, %v, want %v", age, got, err, want)
			}
		}
	})
}

// age makes the charges of an owner as old as if their objects had been stored long ago.
func age(t *testing.T, s Store, owner, kind string) {
	t.Helper()
	switch s := s.(type) {
	case *Memory:
		for id := range s.lists[account{owner, kind}] {
			s.lists[account{owner, kind}][id] = time.Now().Add(-time.Hour)
		}
	case *Redis:
		key := s.prefix + "bu_{" + owner + "}:" + kind
		for _, client := range []redis.UniversalClient{single.Client(t), cluster.Client(t)} {
			ids, err := client.ZRange(t.Context(), key, 0, -1).Result()
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range ids {
				if err := client.ZAdd(t.Context(), key, redis.Z{Score: 1, Member: id}).Err(); err != nil {
					t.Fatal(err)
				}
			}
			if left := client.PTTL(t.Context(), key).Val(); len(ids) > 0 && left <= 0 {
				t.Errorf("the key %s has no TTL", key)
			}
		}
	}
}

// TestEndless checks that the charges of objects that do not end have no TTL, also if an earlier
// charge gave them one, and that refusals are counted.
func TestEndless(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		o := Options{Store: s, Kind: "avatars", Most: 2, Ended: func(context.Context, string, []string) ([]string, error) { return nil, nil }}
		if _, err := New(o).Charge(t.Context(), "amy", "a"); err != nil {
			t.Fatal(err)
		}
		o.Endless = true
		b := New(o)
		for i, object := range []string{"b", "b", "c", "c"} {
			if _, err := b.Charge(t.Context(), "amy", object); (err == nil) != (i < 2) {
				t.Errorf("%s: %v", object, err)
			}
		}
		metrics := prometheus.NewRegistry()
		metrics.MustRegister(b.Metrics()...)
		families, err := metrics.Gather()
		if err != nil || len(families) != 1 || families[0].GetMetric()[0].GetCounter().GetValue() != 2 {
			t.Errorf("the refusals were counted as %v, %v", families, err)
		}
		r, ok := s.(*Redis)
		if !ok {
			return
		}
		for _, client := range []redis.UniversalClient{single.Client(t), cluster.Client(t)} {
			if left := client.PTTL(t.Context(), r.prefix+"bu_{amy}:avatars").Val(); left > 0 {
				t.Errorf("the key has a TTL of %v", left)
			}
		}
	})
}
