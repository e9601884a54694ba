package kittest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/broker"
	"switchboard/broker/extension"
	"switchboard/internal/redispipe"
	"switchboard/kit/budget"
	"switchboard/kit/index"
	"switchboard/queue"
	"switchboard/registry"
)

// Lease is the lease of the servers of a [Store] in Redis. They beat five times as often.
const Lease = time.Second

// Store is a store for brokers, for tests that also use other keys of it.
type Store struct {
	broker.StoreOptions
	Redis  redis.UniversalClient // nil in memory
	Pipe   *redispipe.Pipe       // nil in memory
	Prefix string                // of all keys
}

// EachStore runs a test over a store in memory, Redis and a Redis Cluster.
func EachStore(t *testing.T, test func(t *testing.T, s Store)) {
	t.Run("memory", func(t *testing.T) { test(t, NewMemory()) })
	t.Run("redis", func(t *testing.T) { test(t, NewRedis(Redis.Client(t))) })
	t.Run("cluster", func(t *testing.T) { test(t, NewRedis(Cluster.Client(t))) })
}

// NewMemory returns a store in memory.
func NewMemory() Store { return NewMemoryWith(queue.Options{}) }

// NewMemoryWith returns a store in memory, whose queue has these options.
func NewMemoryWith(o queue.Options) Store {
	reg := registry.NewMemory(registry.Options{})
	return Store{StoreOptions: broker.StoreOptions{
		Registry: reg,
		Queue: queue.NewMemory(o, func(channel string) []string {
			servers, _ := reg.ChannelServers(context.Background(), channel)
			return servers
		}),
	}}
}

var prefixes atomic.Int64

// newPrefix returns a prefix of keys that no other test has.
func newPrefix() string { return fmt.Sprintf("kit%d:", prefixes.Add(1)) }

// NewRedis returns a store in Redis with a new prefix.
func NewRedis(rdb redis.UniversalClient) Store { return OpenRedis(rdb, newPrefix()) }

// OpenRedis returns the store in Redis with a prefix.
func OpenRedis(rdb redis.UniversalClient, prefix string) Store {
	return openRedis(rdb, prefix, registry.Options{Lease: Lease})
}

func openRedis(rdb redis.UniversalClient, prefix string, o registry.Options) Store {
	o.Prefix = prefix
	pipe := redispipe.New(rdb, redispipe.Options{Timeout: 5 * time.Second})
	return Store{Redis: rdb, Pipe: pipe, Prefix: prefix, StoreOptions: broker.StoreOptions{
		Registry: registry.NewRedis(pipe, o),
		Queue:    queue.NewRedis(pipe, queue.Options{Prefix: prefix}),
		Shared:   true,
	}}
}

// Index returns the index of the store with a name. In memory each call returns a new one.
func (s Store) Index(name string) index.Index {
	if !s.Shared {
		return index.NewMemory()
	}
	return index.NewRedis(s.Pipe, s.Prefix, name)
}

// Budgets returns the budgets of users in the store. In memory each call returns new ones.
func (s Store) Budgets() budget.Store {
	if !s.Shared {
		return budget.NewMemory()
	}
	return budget.NewRedis(s.Pipe, s.Prefix)
}

// Start runs a broker until the test ends, and returns when it is ready. options changes the
// options of the broker; nil changes nothing.
func (s Store) Start(t testing.TB, options func(*broker.Options)) *Broker {
	t.Helper()
	b := start(t, s.StoreOptions, beat(options))
	b.awaitReady(t)
	return b
}

// Run runs a broker for an example or a TestMain, which have no [testing.TB]. It returns when the
// broker listens. stop ends the broker. Both panic if it fails.
func (s Store) Run(options func(*broker.Options)) (b *Broker, stop func()) {
	b, err := run(s.StoreOptions, beat(options))
	if err != nil {
		panic(err)
	}
	return b, func() {
		if err := b.stopAndWait(); err != nil {
			panic(err)
		}
	}
}

// beat returns options of a broker that beats as often as [Lease] needs.
func beat(options func(*broker.Options)) func(*broker.Options) {
	return func(o *broker.Options) {
		o.Timing.Beat = Lease / 5
		if options != nil {
			options(o)
		}
	}
}

// With returns options of a broker with an extension.
func With(create func(*extension.Host) (extension.Extension, error)) func(*broker.Options) {
	return func(o *broker.Options) { o.Extensions = append(o.Extensions, create) }
}
