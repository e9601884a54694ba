package board

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"switchboard/broker"
	"switchboard/client"
	"switchboard/internal/await"
	"switchboard/internal/redispipe"
	"switchboard/internal/redistest"
	"switchboard/queue"
	"switchboard/registry"
)

// permanentGoroutines last as long as the process.
var permanentGoroutines = []goleak.Option{
	goleak.IgnoreTopFunction("github.com/panjf2000/ants/v2.(*poolCommon).purgeStaleWorkers"),
	goleak.IgnoreTopFunction("github.com/panjf2000/ants/v2.(*poolCommon).ticktock"),
	goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*goWorker).run.func1"),
}

// beat is the heartbeat of brokers that share a store.
const beat = 100 * time.Millisecond

// testStore is a store for brokers, with a key prefix of its own.
type testStore struct {
	broker.StoreOptions
	Pipe   *redispipe.Pipe // nil in memory
	Redis  redis.UniversalClient
	Prefix string
}

// Brokers returns how many brokers a test should run: one in memory.
func (s testStore) Brokers() int {
	if s.Shared {
		return 3
	}
	return 1
}

// extensionFunc makes an extension, see broker.Options.
type extensionFunc = func(*broker.Host) (broker.Extension, error)

// overStores runs a test over memory, Redis and a Cluster.
func overStores(t *testing.T, server *redistest.Server, cluster *redistest.Cluster, test func(t *testing.T, s testStore)) {
	t.Run("memory", func(t *testing.T) { test(t, memoryStore()) })
	t.Run("redis", func(t *testing.T) { test(t, redisStore(server.Client(t))) })
	t.Run("cluster", func(t *testing.T) { test(t, redisStore(cluster.Client(t))) })
}

// memoryStore returns a store in memory.
func memoryStore() testStore {
	reg := registry.NewMemory(registry.Options{})
	return testStore{StoreOptions: broker.StoreOptions{
		Registry: reg,
		Queue: queue.NewMemory(queue.Options{}, func(channel string) []string {
			servers, _ := reg.ChannelServers(context.Background(), channel)
			return servers
		}),
	}}
}

var prefixes atomic.Int64

// redisStore returns a store in Redis with a new prefix.
func redisStore(rdb redis.UniversalClient) testStore {
	s := testStore{Prefix: fmt.Sprintf("t%d:", prefixes.Add(1)), Redis: rdb}
	s.Pipe = redispipe.New(rdb, redispipe.Options{Timeout: 5 * time.Second})
	s.StoreOptions = broker.StoreOptions{
		Registry: registry.NewRedis(s.Pipe, registry.Options{Prefix: s.Prefix, Lease: 5 * beat}),
		Queue:    queue.NewRedis(s.Pipe, queue.Options{Prefix: s.Prefix}),
		Shared:   true,
	}
	return s
}

// instance is a running broker.
type instance struct {
	*broker.Broker
	broker.Addrs
}

// Start runs a broker until the test ends, and returns when it is ready. change may be nil.
func (s testStore) Start(t testing.TB, extension extensionFunc, change func(*broker.Options)) *instance {
	t.Helper()
	o := broker.Options{
		Name:       "b",
		Listen:     broker.ListenOptions{HTTP: "127.0.0.1:0", TCP: "127.0.0.1:0"},
		Store:      s.StoreOptions,
		Timing:     broker.TimingOptions{Drain: 10 * time.Millisecond},
		Extensions: []func(*broker.Host) (broker.Extension, error){extension},
	}
	if change != nil {
		change(&o)
	}
	b, err := broker.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
	i := &instance{Broker: b}
	if i.Addrs, err = b.Addrs(ctx); err != nil {
		t.Fatal(err)
	}
	await.True(t, "the broker is ready", func() bool {
		resp, err := http.Get("http://" + i.HTTP + "/readyz")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return i
}

// Call makes an API call, and decodes the answer into the value to which into points. It returns
// the status, and the code of an error.
func (i *instance) Call(t testing.TB, method, path, body string, into any) (status int, code string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+i.HTTP+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		var answer struct{ Error struct{ Code string } }
		if err := json.Unmarshal(raw, &answer); err != nil {
			t.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, raw)
		}
		return resp.StatusCode, answer.Error.Code
	}
	if into != nil {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		if err := d.Decode(into); err != nil {
			t.Fatalf("%s %s: %s: %v", method, path, raw, err)
		}
	}
	return resp.StatusCode, ""
}

// Client runs a client of the broker until the test ends. change may be nil.
func (i *instance) Client(t testing.TB, user string, change func(*client.Options)) *client.Client {
	t.Helper()
	o := client.Options{URLs: []string{"tcp://" + i.TCP}, User: user}
	if change != nil {
		change(&o)
	}
	c, err := client.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return c
}
