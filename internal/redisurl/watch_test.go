package redisurl

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"switchboard/internal/await"
	"switchboard/internal/redistest"
	"switchboard/internal/slots"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// begin opens url and begins its Watch.
func begin(t *testing.T, url string) (redis.UniversalClient, *Watch) {
	t.Helper()
	client, w, err := Open(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	if err := w.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	return client, w
}

// awaitChange writes a key, like a beat, until the Watch reports a change. It returns the slots.
func awaitChange(t *testing.T, client redis.UniversalClient, w *Watch, key string) slots.Set {
	t.Helper()
	beat := time.NewTicker(10 * time.Millisecond)
	defer beat.Stop()
	for {
		select {
		case concerned := <-w.Changed():
			return concerned
		case <-beat.C:
			_ = client.Set(t.Context(), key, "1", 0).Err() // fails while the server is down
		case <-t.Context().Done():
			t.Fatal("no change reported")
		}
	}
}

// connectMany opens many connections at the same time.
func connectMany(t *testing.T, client redis.UniversalClient) {
	t.Helper()
	var wg sync.WaitGroup
	for range 4 * poolSize {
		wg.Go(func() {
			pipe := client.Pipeline()
			pipe.Ping(t.Context())
			if _, err := pipe.Exec(t.Context()); err != nil {
				t.Error(err)
			}
			if err := client.Ping(t.Context()).Err(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func assertUnchanged(t *testing.T, w *Watch) {
	t.Helper()
	select {
	case <-w.Changed():
		t.Fatal("a change without a new server")
	default:
	}
}

func TestWatchRestart(t *testing.T) {
	s := redistest.Start(t)
	client, w := begin(t, s.URL())
	connectMany(t, client)
	assertUnchanged(t, w)
	s.Kill()
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	if got := awaitChange(t, client, w, "beat"); got != slots.All() {
		t.Error("the restart of a single Redis does not concern all slots")
	}
	connectMany(t, client)
	assertUnchanged(t, w)
}

// TestWatchCluster checks that the restart of a master concerns its slots, and a failover those of
// the master that failed.
func TestWatchCluster(t *testing.T) {
	c := redistest.StartReplicatedCluster(t, 3)
	client, w := begin(t, c.URL())
	connectMany(t, client)
	assertUnchanged(t, w)
	names := namesOn(t, c)
	checkMasters(t, w, names)
	for i, restarts := range []bool{true, false} {
		failed := c.Masters[i]
		before := epochsOf(w, names)
		failed.Kill()
		if restarts {
			if err := failed.Restart(); err != nil {
				t.Fatal(err)
			}
		}
		concerned := awaitChange(t, client, w, names[i])
		for k, name := range names {
			want := k == i
			if concerned.HasName(name) != want {
				t.Errorf("master %d failed: the change concerns the name on master %d: %t", i, k, !want)
			}
			if changed := w.EpochOf(name) != before[k]; changed != want {
				t.Errorf("master %d failed: the epoch of the name on master %d has changed: %t", i, k, changed)
			}
		}
		checkMasters(t, w, names)
	}
}

// checkMasters checks that the names are on different masters, and others beside them.
func checkMasters(t *testing.T, w *Watch, names []string) {
	t.Helper()
	seen := map[int]bool{}
	for _, name := range names {
		seen[w.MasterOf(name)] = true
	}
	if len(seen) != len(names) || seen[0] {
		t.Errorf("the numbers of the masters are %v", seen)
	}
	for n := range 100 {
		if name := fmt.Sprint("other", n); !seen[w.MasterOf(name)] {
			t.Errorf("%s is on none of the masters", name)
		}
	}
}

// namesOn returns a name on each master of a Cluster.
func namesOn(t *testing.T, c *redistest.Cluster) (names []string) {
	for _, master := range c.Masters {
		for n := 0; ; n++ {
			name := fmt.Sprint("n", n)
			on, _, err := c.Of(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if on == master {
				names = append(names, name)
				break
			}
		}
	}
	return names
}

func epochsOf(w *Watch, names []string) (epochs []uint64) {
	for _, name := range names {
		epochs = append(epochs, w.EpochOf(name))
	}
	return epochs
}

func TestWatchWithoutInfo(t *testing.T) {
	s := redistest.Start(t)
	if err := s.Client(t).Do(t.Context(), "acl", "setuser", "tight", "on", ">pw", "~*", "+@all", "-info").Err(); err != nil {
		t.Fatal(err)
	}
	client, w := begin(t, "redis://tight:pw@"+s.Addr)
	connectMany(t, client)
	select {
	case <-w.Changed():
	default:
		t.Fatal("no change reported without INFO")
	}
}

func TestBeginFailsWithoutServer(t *testing.T) {
	s := redistest.Start(t)
	s.Kill()
	client, w, err := Open(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := w.Begin(t.Context()); err == nil {
		t.Fatal("connected without a server")
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	// The pool dials again once a second.
	await.NoError(t.Context(), t, "connect after the restart", func() error { return w.Begin(t.Context()) })
	assertUnchanged(t, w)
}

func TestCheckPolicy(t *testing.T) {
	s := redistest.Start(t)
	admin := s.Client(t)
	client, _ := begin(t, s.URL())
	for policy, want := range map[string]error{"noeviction": nil, "allkeys-lru": ErrEvicts, "volatile-ttl": ErrEvicts} {
		if err := admin.ConfigSet(t.Context(), "maxmemory-policy", policy).Err(); err != nil {
			t.Fatal(err)
		}
		if err := CheckPolicy(t.Context(), client); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", policy, err, want)
		}
	}

	for rights, want := range map[string]error{"-info": ErrEvicts, "-config": ErrEvicts, "-info -config": ErrPolicyUnknown} {
		user := []any{"acl", "setuser", "tight", "reset", "on", ">pw", "~*", "+@all"}
		for _, right := range strings.Fields(rights) {
			user = append(user, right)
		}
		if err := errors.Join(admin.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lfu").Err(), admin.Do(t.Context(), user...).Err()); err != nil {
			t.Fatal(err)
		}
		tight, _ := begin(t, "redis://tight:pw@"+s.Addr)
		if err := CheckPolicy(t.Context(), tight); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", rights, err, want)
		}
	}

	s.Kill()
	if err := CheckPolicy(t.Context(), client); err == nil || errors.Is(err, ErrPolicyUnknown) || errors.Is(err, ErrEvicts) {
		t.Errorf("without a server: %v", err)
	}
}

func TestCheckPolicyCluster(t *testing.T) {
	c := redistest.StartCluster(t, 3)
	client, _ := begin(t, c.URL())
	if err := CheckPolicy(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	if err := c.Masters[1].Client(t).ConfigSet(t.Context(), "maxmemory-policy", "allkeys-random").Err(); err != nil {
		t.Fatal(err)
	}
	if err := CheckPolicy(t.Context(), client); !errors.Is(err, ErrEvicts) {
		t.Fatalf("one of three evicts: %v", err)
	}
}
