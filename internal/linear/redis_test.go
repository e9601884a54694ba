//go:build long

package linear

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"switchboard/internal/await"
	"switchboard/internal/redispipe"
	"switchboard/internal/redistest"
	"switchboard/internal/redisurl"
	"switchboard/queue"
)

func init() { redis.SetLogger(silent{}) }

// silent logs nothing: the tests end connections on purpose.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

var (
	server  *redistest.Server
	cluster *redistest.Cluster

	redisSeeds = flag.Uint64("redisseeds", 3, "how many histories to check over each kind of Redis")
	prefixes   atomic.Int64
)

func TestMain(m *testing.M) {
	// A pool that failed to dial notices only a second later that it is closed.
	dialing := goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial")
	os.Exit(redistest.Main(m, &server, &cluster, dialing))
}

// newPrefix returns a prefix of keys for one test.
func newPrefix() string { return fmt.Sprintf("t%d:", prefixes.Add(1)) }

// openStores returns the queues of n servers that share a Redis.
func openStores(t *testing.T, url, prefix string, n int) (queues []*queue.Redis) {
	t.Helper()
	for range n {
		client, watch, err := redisurl.Open(url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		await.NoError(ctx, t, "Redis is not reachable", func() error { return watch.Begin(ctx) })
		pipe := redispipe.New(client, redispipe.Options{ReplicaTimeout: 50 * time.Millisecond})
		queues = append(queues, queue.NewRedis(pipe, queue.Options{Prefix: prefix, Replaced: watch.Replaced}))
	}
	return queues
}

func storesOf(queues []*queue.Redis) (stores []store) {
	for _, q := range queues {
		stores = append(stores, q)
	}
	return stores
}

// TestRedis checks histories of three servers over one Redis.
func TestRedis(t *testing.T) { overRedis(t, server.URL()) }

// TestCluster checks histories of three servers over a Redis Cluster.
func TestCluster(t *testing.T) { overRedis(t, cluster.URL()) }

// overRedis checks histories in which some clients abandon calls, which happen nevertheless.
func overRedis(t *testing.T, url string) {
	outcomes := map[string]int{}
	eachSeed(t, *redisSeeds, func(t *testing.T, seed uint64) string {
		queues, h := openStores(t, url, newPrefix(), 3), newHistory()
		w := newWorkload(seed)
		w.abandon = 2 * time.Millisecond
		w.run(t.Context(), h, storesOf(queues)...)
		h.count(outcomes)
		return h.check(readLog(t, queues[0]), nil)
	})
	t.Log(outcomes)
}

// TestKilledRedis kills Redis several times during each history. It starts again with its
// append-only file, which has every write that was acknowledged. (With appendfsync everysec, Redis
// may acknowledge a write before it writes it to the file.)
func TestKilledRedis(t *testing.T) {
	outcomes := map[string]int{}
	eachSeed(t, *redisSeeds, func(t *testing.T, seed uint64) string {
		own := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "no")
		queues, h := openStores(t, own.URL(), newPrefix(), 3), newHistory()
		var ended atomic.Bool
		w := newWorkload(seed)
		w.calls, w.ended = 1000, ended.Load
		kills := make(chan error, 1)
		go func() {
			defer ended.Store(true)
			for range 3 {
				<-h.after(200)
				own.Kill()
				if err := own.Restart(); err != nil {
					kills <- err
					return
				}
			}
			<-h.after(200)
			kills <- nil
		}()
		w.run(t.Context(), h, storesOf(queues)...)
		if err := <-kills; err != nil {
			t.Fatal(err)
		}
		h.count(outcomes)
		return h.check(readLog(t, queues[0]), nil)
	})
	t.Log(outcomes)
}
