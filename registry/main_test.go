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

// The Redis processes are shared by all tests. Each test has its own prefix.
var (
	single   *redistest.Server
	cluster  *redistest.Cluster
	prefixes atomic.Int64
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m, &single, &cluster)) }

// store is a registry under test, with functions that expire a key.
type store struct {
	contract
	loseLease     func(server string)
	loseTombstone func(server string)
	loseUser      func(user string)
	loseRevoked   func(user string) // for all clients
	ageSpent      func(t *testing.T, user string, by time.Duration)
	endListed     func(t *testing.T, server string)   // ends its lease in the list of live servers
	pause         func(t *testing.T, d time.Duration) // lets time pass for the list of live servers
	loseList      func(c SubscriptionChange)
	ageWatches    func(t *testing.T, user string) // ends the watches of a user
}

// eachStore runs a test over every implementation.
func eachStore(t *testing.T, test func(t *testing.T, s store)) {
	t.Run("memory", func(t *testing.T) { test(t, memoryStore()) })
	t.Run("redis", func(t *testing.T) { test(t, redisStore(t, single.Client(t))) })
	t.Run("cluster", func(t *testing.T) {
		s := redisStore(t, cluster.Client(t))
		s.KeepChannelList(false)
		test(t, s)
	})
	t.Run("cluster beside a former version", func(t *testing.T) { test(t, redisStore(t, cluster.Client(t))) })
}

// memoryStore expires a key by advancing the clock, which ages everything else too.
func memoryStore() store {
	now := time.Now()
	m := NewMemory(Options{Now: func() time.Time { return now }})
	advance := func(d time.Duration) func(string) {
		return func(string) { now = now.Add(d) }
	}
	return store{m, advance(m.opts.Lease), advance(m.opts.TombstoneTTL), advance(m.opts.UserTTL), advance(m.opts.RevokedTTL),
		func(_ *testing.T, _ string, by time.Duration) { now = now.Add(by) },
		func(_ *testing.T, server string) { m.live.ends[server] = now },
		func(_ *testing.T, d time.Duration) { now = now.Add(d) },
		func(SubscriptionChange) { now = now.Add(m.opts.SubscribedTTL) },
		func(*testing.T, string) { now = now.Add(m.opts.UserTTL + time.Millisecond) }}
}

// redisStore expires a key by deleting it.
func redisStore(t *testing.T, client redis.UniversalClient) store {
	r := newRedis(client)
	deleting := func(key func(string) string) func(string) {
		return func(name string) {
			if n, err := client.Del(t.Context(), key(name)).Result(); err != nil || n != 1 {
				t.Fatalf("deleting %s: %d keys, %v", key(name), n, err)
			}
		}
	}
	return store{r, deleting(r.keys.lease), deleting(r.keys.tombstone), deleting(r.keys.user),
		deleting(func(user string) string { return r.keys.revoked(user, "") }),
		func(t *testing.T, user string, by time.Duration) {
			key, later := r.keys.spent(user, ""), time.Duration(0)
			for _, field := range []string{"bytes", "channels"} {
				full, err := client.HIncrBy(t.Context(), key, field, -by.Microseconds()).Result()
				ok(t, err)
				later = max(later, time.Until(time.UnixMicro(full).Add(by)))
			}
			if ttl := client.PTTL(t.Context(), key).Val(); ttl > later+time.Minute || ttl < later-time.Minute {
				t.Errorf("the TTL is %v, want %v", ttl, later)
			}
		},
		func(t *testing.T, server string) {
			ok(t, client.ZAddXX(t.Context(), r.keys.listEnds(), redis.Z{Score: 1, Member: server}).Err())
		},
		func(t *testing.T, d time.Duration) {
			for _, name := range client.ZRange(t.Context(), r.keys.listEnds(), 0, -1).Val() {
				if name != " change" {
					ok(t, client.ZIncrBy(t.Context(), r.keys.listEnds(), -float64(d.Microseconds()), name).Err())
				}
			}
		},
		func(c SubscriptionChange) {
			key := r.keys.subscriptions(c.User, c.Client)
			if ttl := client.PTTL(t.Context(), key).Val(); ttl <= r.opts.SubscribedTTL-time.Minute || ttl > r.opts.SubscribedTTL {
				t.Errorf("%s ends in %v", key, ttl)
			}
			ok(t, client.Del(t.Context(), key).Err())
		},
		func(t *testing.T, user string) {
			key := r.keys.userWatchers(user)
			if ttl := client.PTTL(t.Context(), key).Val(); ttl <= r.opts.UserTTL-time.Minute || ttl > r.opts.UserTTL {
				t.Errorf("%s ends in %v", key, ttl)
			}
			for _, server := range client.ZRange(t.Context(), key, 0, -1).Val() {
				ok(t, client.ZIncrBy(t.Context(), key, -float64(r.opts.UserTTL.Microseconds()+1000), server).Err())
			}
		}}
}

// newRedis returns a registry with its own prefix.
func newRedis(client redis.UniversalClient) *Redis {
	return NewRedis(redispipe.New(client, redispipe.Options{}),
		Options{Prefix: fmt.Sprintf("t%d:", prefixes.Add(1))})
}
