package kittest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/broker"
	"switchboard/internal/redispipe"
	"switchboard/queue"
	"switchboard/registry"
)

// Lease is the lease of the servers of a [Store] in Redis.
const Lease = 500 * time.Millisecond

// Store is a store for brokers, for tests that also use other keys of it.
type Store struct {
	broker.StoreOptions
	Pipe   *redispipe.Pipe // nil in memory
	Prefix string          // of all keys
}

// EachStore runs a test over a store in memory, Redis and a Redis Cluster.
func EachStore(t *testing.T, test func(t *testing.T, s Store)) {
	t.Run("memory", func(t *testing.T) { test(t, NewMemory()) })
	t.Run("redis", func(t *testing.T) { test(t, NewRedis(Redis.Client(t))) })
	t.Run("cluster", func(t *testing.T) { test(t, NewRedis(Cluster.Client(t))) })
}

// NewMemory returns a store in memory.
func NewMemory() Store {
	reg := registry.NewMemory(registry.Options{})
	return Store{StoreOptions: broker.StoreOptions{
		Registry: reg,
		Queue: queue.NewMemory(queue.Options{}, func(channel string) []string {
			servers, _ := reg.ChannelServers(context.Background(), channel)
			return servers
		}),
	}}
}

// NewRedis returns a store in Redis with a new prefix.
func NewRedis(rdb redis.UniversalClient) Store {
	return OpenRedis(rdb, fmt.Sprintf("kit%d:", prefixes.Add(1)))
}

// OpenRedis returns the store in Redis with a prefix.
func OpenRedis(rdb redis.UniversalClient, prefix string) Store {
	pipe := redispipe.New(rdb, redispipe.Options{Timeout: 5 * time.Second})
	return Store{Pipe: pipe, Prefix: prefix, StoreOptions: broker.StoreOptions{
		Registry: registry.NewRedis(pipe, registry.Options{Prefix: prefix, Lease: Lease}),
		Queue:    queue.NewRedis(pipe, queue.Options{Prefix: prefix}),
		Shared:   true,
	}}
}

// Start runs a broker until the test ends, and returns when it is ready.
func (s Store) Start(t *testing.T, options func(*broker.Options)) *Broker {
	t.Helper()
	b := start(t, s.StoreOptions, options)
	b.awaitReady(t)
	return b
}
