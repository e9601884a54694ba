package index

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
	"switchboard/internal/redistest"
)

// The Redis processes are shared by all tests. Each test has its own prefix.
var (
	single   *redistest.Server
	cluster  *redistest.Cluster
	prefixes atomic.Int64
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m, &single, &cluster)) }

func TestScriptHeaders(t *testing.T) { redistest.CheckScripts(t, single.Client(t), luaFiles) }

// eachIndex runs a test over every implementation.
func eachIndex(t *testing.T, test func(t *testing.T, i Index)) {
	open := func(client redis.UniversalClient) Index {
		prefix := fmt.Sprintf("t%d:", prefixes.Add(1))
		return NewRedis(redispipe.New(client, redispipe.Options{Timeout: time.Second}), prefix, "things")
	}
	t.Run("memory", func(t *testing.T) { test(t, NewMemory()) })
	t.Run("redis", func(t *testing.T) { test(t, open(single.Client(t))) })
	t.Run("cluster", func(t *testing.T) { test(t, open(cluster.Client(t))) })
}

func put(t *testing.T, i Index, cards ...Card) {
	t.Helper()
	if err := i.Put(t.Context(), cards...); err != nil {
		t.Fatal(err)
	}
}

// ids returns the ids of all pages of a query.
func ids(t *testing.T, i Index, q Query) (list []string) {
	t.Helper()
	for {
		page, err := i.List(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range page.Cards {
			list = append(list, c.ID)
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return list
		}
		if len(page.Cards) != q.Limit {
			t.Fatalf("a page of %d cards, want %d", len(page.Cards), q.Limit)
		}
	}
}

func TestLists(t *testing.T) {
	eachIndex(t, func(t *testing.T, i Index) {
		put(t, i,
			Card{ID: "a", Version: 1, Lists: map[string]int64{"all": 3, "red": 1}, Data: []byte("a\nb")},
			Card{ID: "b", Version: 1, Lists: map[string]int64{"all": 2}},
			Card{ID: "c", Version: 1, Lists: map[string]int64{"all": 2, "red": 0}},
			Card{ID: "d", Version: 1, Lists: map[string]int64{"all": 2}},
		)
		for want, q := range map[string]Query{
			"[b c d a]": {List: "all"},
			"[a d c b]": {List: "all", Descending: true},
			"[c a]":     {List: "red"},
			"[b c d]":   {List: "all", Max: 2},
			"[a]":       {List: "all", Min: 3},
			"[]":        {List: "none"},
		} {
			for limit := 1; limit <= 5; limit++ {
				q.Limit = limit
				if got := fmt.Sprint(ids(t, i, q)); got != want {
					t.Errorf("%+v: %s, want %s", q, got, want)
				}
			}
		}
		page, err := i.List(t.Context(), Query{List: "red", Min: 1})
		if err != nil || len(page.Cards) != 1 || string(page.Cards[0].Data) != "a\nb" || page.Cards[0].Lists["red"] != 1 {
			t.Errorf("%+v, %v", page, err)
		}
		if counts, err := i.Count(t.Context(), "all", "none", "red"); err != nil || !slices.Equal(counts, []int{4, 0, 2}) {
			t.Errorf("%v, %v", counts, err)
		}
		if _, err := i.List(t.Context(), Query{List: "all", Cursor: "x"}); !errors.Is(err, ErrBadCursor) {
			t.Errorf("a bad cursor: %v", err)
		}
	})
}

// TestVersions checks that a late write changes nothing.
func TestVersions(t *testing.T) {
	eachIndex(t, func(t *testing.T, i Index) {
		const newer = 800_000_000_000_000_001 // above 2^53: as numbers of Lua it equals older
		const older = newer - 1
		put(t, i, Card{ID: "a", Version: newer, Lists: map[string]int64{"x": 1}, Data: []byte("new")})
		put(t, i, Card{ID: "a", Version: older, Lists: map[string]int64{"y": 1}, Data: []byte("old")})
		cards, err := i.Get(t.Context(), "b", "a")
		if err != nil || cards[0].ID != "" || string(cards[1].Data) != "new" || cards[1].Version != newer || cards[1].Lists["x"] != 1 {
			t.Fatalf("%+v, %v", cards, err)
		}
		versions := func(want ...int64) {
			t.Helper()
			if got, err := i.Versions(t.Context(), "b", "a"); err != nil || !slices.Equal(got, want) {
				t.Errorf("the versions are %v, %v, want %v", got, err, want)
			}
		}
		versions(0, newer)
		put(t, i, Card{ID: "a", Version: newer + 1})
		versions(0, 0)
		put(t, i, Card{ID: "a", Version: newer, Lists: map[string]int64{"x": 1}})
		if cards, err := i.Get(t.Context(), "a"); err != nil || cards[0].ID != "" {
			t.Fatalf("after the removal: %+v, %v", cards, err)
		}
		if counts, err := i.Count(t.Context(), "x", "y"); err != nil || !slices.Equal(counts, []int{0, 0}) {
			t.Errorf("%v, %v", counts, err)
		}
		if err := i.Sweep(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		put(t, i, Card{ID: "a", Version: newer, Lists: map[string]int64{"x": 1}}) // the removal is still known
		put(t, i, Card{ID: "a", Version: newer + 2, Lists: map[string]int64{"x": 2}})
		if got := fmt.Sprint(ids(t, i, Query{List: "x"})); got != "[a]" {
			t.Errorf("a card that came back: %s", got)
		}
	})
}

func TestDue(t *testing.T) {
	eachIndex(t, func(t *testing.T, i Index) {
		schedule := func(in time.Duration, ids ...string) {
			t.Helper()
			if err := i.Schedule(t.Context(), in, ids...); err != nil {
				t.Fatal(err)
			}
		}
		take := func(lease time.Duration) (tasks []Task) {
			t.Helper()
			tasks, err := i.Take(t.Context(), 10, lease)
			if err != nil {
				t.Fatal(err)
			}
			return tasks
		}
		schedule(0, "a", "b")
		schedule(time.Hour, "a", "c") // a stays due
		tasks := take(time.Minute)
		if len(tasks) != 2 || len(take(time.Minute)) != 0 {
			t.Fatalf("took %v", tasks)
		}
		schedule(0, "b") // something has changed while b was leased
		done := func(next time.Duration, tasks ...Task) {
			t.Helper()
			list := map[Task]time.Duration{}
			for _, task := range tasks {
				list[task] = next
			}
			if err := i.Done(t.Context(), list); err != nil {
				t.Fatal(err)
			}
		}
		done(0, tasks...)
		tasks = take(-time.Second) // a lease that has ended
		if len(tasks) != 1 || tasks[0].ID != "b" {
			t.Fatalf("took %v", tasks)
		}
		again := take(time.Minute)
		if len(again) != 1 || again[0].ID != "b" {
			t.Fatalf("after the end of a lease: took %v", again)
		}
		done(0, tasks[0]) // the lease of another caller
		done(time.Hour, again[0])
		if tasks := take(time.Minute); len(tasks) != 0 {
			t.Errorf("took %v", tasks)
		}
		schedule(0, "b")
		if tasks := take(time.Minute); len(tasks) != 1 {
			t.Errorf("an earlier time: took %v", tasks)
		}
	})
}

func TestBadCards(t *testing.T) {
	eachIndex(t, func(t *testing.T, i Index) {
		for _, c := range []Card{
			{Version: 1}, {ID: "a\nb"}, {ID: "a", Lists: map[string]int64{"x y": 1}}, {ID: "a", Lists: map[string]int64{"": 1}},
			{ID: "a", Lists: map[string]int64{"x": MaxScore + 1}},
		} {
			if err := i.Put(t.Context(), c); err == nil {
				t.Errorf("%+v was accepted", c)
			}
		}
	})
}
