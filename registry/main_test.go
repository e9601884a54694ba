package registry

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
	"switchboard/internal/redistest"
)

// The Redis processes of all tests, started once; each test has a prefix of its own.
var (
	single   *redistest.Server
	cluster  *redistest.Cluster
	prefixes atomic.Int64
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m, &single, &cluster)) }

// store is a registry under test, with what time does to it.
type store struct {
	contract
	loseLease     func(server string)
	loseTombstone func(server string)
	loseUser      func(user string)
}

// eachStore runs a test over every implementation.
func eachStore(t *testing.T, test func(t *testing.T, s store)) {
	t.Run("memory", func(t *testing.T) { test(t, memoryStore()) })
	t.Run("redis", func(t *testing.T) { test(t, redisStore(t, single.Client(t))) })
	t.Run("cluster", func(t *testing.T) { test(t, redisStore(t, cluster.Client(t))) })
}

// memoryStore loses things by turning its clock forward, which ages everything in it.
func memoryStore() store {
	now := time.Now()
	m := NewMemory(Options{Now: func() time.Time { return now }})
	after := func(d time.Duration) func(string) {
		return func(string) { now = now.Add(d) }
	}
	return store{m, after(m.opts.Lease), after(m.opts.TombstoneTTL), after(m.opts.UserTTL)}
}

// redisStore loses things by deleting the key, as its TTL does in the end.
func redisStore(t *testing.T, client redis.UniversalClient) store {
	r := newRedis(client)
	losing := func(key func(string) string) func(string) {
		return func(name string) {
			if n, err := client.Del(t.Context(), key(name)).Result(); err != nil || n != 1 {
				t.Fatalf("deleting %s: %d keys, %v", key(name), n, err)
			}
		}
	}
	return store{r, losing(r.keys.lease), losing(r.keys.tombstone), losing(r.keys.user)}
}

// newRedis returns a registry with a prefix that no other test has.
func newRedis(client redis.UniversalClient) *Redis {
	return NewRedis(redispipe.New(client, redispipe.Options{}),
		Options{Prefix: fmt.Sprintf("t%d:", prefixes.Add(1))})
}
