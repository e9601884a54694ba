//go:build long

package redistest_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/await"
	"switchboard/internal/redistest"
	"switchboard/internal/redisurl"
)

// open returns a client like that of the broker.
func open(t *testing.T, url string) redis.UniversalClient {
	t.Helper()
	client, _, err := redisurl.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// setReplicated writes key and waits until a replica has it.
func setReplicated(ctx context.Context, t *testing.T, node redis.Cmdable, key, value string) {
	t.Helper()
	pipe := node.Pipeline()
	pipe.Set(ctx, key, value, 0)
	wait := pipe.Do(ctx, "wait", 1, 1500)
	if _, err := pipe.Exec(ctx); err != nil || wait.Val() != int64(1) {
		t.Fatalf("on %v replicas: %v", wait.Val(), err)
	}
}

// setRetrying writes key until a master accepts it.
func setRetrying(ctx context.Context, t *testing.T, client redis.UniversalClient, key, value string) {
	t.Helper()
	await.NoError(ctx, t, "no master accepts a write", func() error { return client.Set(ctx, key, value, 0).Err() })
}

func want(ctx context.Context, t *testing.T, client redis.UniversalClient, key, value string) {
	t.Helper()
	if got, err := client.Get(ctx, key).Result(); got != value {
		t.Errorf("%s is %q (%v), want %q", key, got, err, value)
	}
}

func TestSentinelsReplaceAKilledMaster(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s := redistest.StartSentinel(t)
	client := open(t, s.URL())
	for _, round := range []string{"first", "second"} {
		setReplicated(ctx, t, client, round, "before")
		master, err := s.Master(ctx)
		if err != nil {
			t.Fatal(err)
		}
		master.Kill()
		setRetrying(ctx, t, client, "after", round)
		want(ctx, t, client, round, "before")
		if err := s.Rejoin(ctx, master); err != nil {
			t.Fatal(err)
		}
		if replica, err := s.Replica(ctx); replica != master {
			t.Fatalf("the restarted server is not the replica (%v)", err)
		}
	}
}

func TestReplicaReplacesAKilledMasterOfACluster(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := redistest.StartReplicatedCluster(t, 3)
	client := open(t, c.URL())
	master, replica, err := c.Of(ctx, "key")
	if err != nil {
		t.Fatal(err)
	}
	const sameSlot = "{key}" // in the slot of "key"
	setReplicated(ctx, t, master.Client(t), sameSlot, "before")
	master.Kill()
	setRetrying(ctx, t, client, "key", "after")
	want(ctx, t, client, sameSlot, "before")
	if got, err := replica.Client(t).Get(ctx, "key").Result(); got != "after" {
		t.Errorf("the replica did not take over: it holds %q (%v)", got, err)
	}
}

func TestAppendOnlyFileSurvivesKill(t *testing.T) {
	s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "everysec")
	client := open(t, s.URL())
	setRetrying(t.Context(), t, client, "key", "before")
	s.Kill()
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	want(t.Context(), t, s.Client(t), "key", "before")
}
