// Package kittest runs brokers with extensions for the tests of accounts: over memory, over one
// Redis and over a Redis Cluster.
package kittest

import (
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
	"switchboard/internal/await"
	"switchboard/internal/redispipe"
	"switchboard/internal/redistest"
	"switchboard/queue"
	"switchboard/registry"
)

// Leaks are goroutines that last as long as the process: those of gnet's worker pool.
var Leaks = []goleak.Option{
	goleak.IgnoreTopFunction("github.com/panjf2000/ants/v2.(*poolCommon).purgeStaleWorkers"),
	goleak.IgnoreTopFunction("github.com/panjf2000/ants/v2.(*poolCommon).ticktock"),
	goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*goWorker).run.func1"),
}

// Store is a store that brokers can share.
type Store struct {
	Registry broker.Registry
	Queue    broker.Queue
	// Pipe and Prefix are those of the Redis. Pipe is nil in memory, where there is only one broker.
	Pipe   *redispipe.Pipe
	Prefix string
}

// beat is the interval of the brokers' heartbeats. A broker knows of another one after a beat.
const beat = 200 * time.Millisecond

var prefixes atomic.Int64

// Memory returns a store in memory.
func Memory() Store {
	reg := registry.NewMemory(registry.Options{})
	return Store{Registry: reg, Queue: queue.NewMemory(queue.Options{}, func(channel string) []string {
		servers, _ := reg.ChannelServers(context.Background(), channel)
		return servers
	})}
}

// Redis returns a store in Redis with a new key prefix.
func Redis(client redis.UniversalClient) Store {
	prefix := fmt.Sprintf("k%d:", prefixes.Add(1))
	pipe := redispipe.New(client, redispipe.Options{Timeout: 5 * time.Second})
	return Store{
		registry.NewRedis(pipe, registry.Options{Prefix: prefix, Lease: 5 * beat}), queue.NewRedis(pipe, queue.Options{Prefix: prefix}), pipe, prefix,
	}
}

// EachStore runs a test over memory, Redis and a Cluster.
func EachStore(t *testing.T, single **redistest.Server, cluster **redistest.Cluster, test func(t *testing.T, s Store)) {
	t.Run("memory", func(t *testing.T) { test(t, Memory()) })
	t.Run("redis", func(t *testing.T) { test(t, Redis((*single).Client(t))) })
	t.Run("cluster", func(t *testing.T) { test(t, Redis((*cluster).Client(t))) })
}

// Broker is a running broker.
type Broker struct {
	*broker.Broker
	broker.Addrs
	Stop func() // shuts the broker down; a second call does nothing
}

// Start runs a broker until the test ends. create makes its extension; change may be nil.
func (s Store) Start(t *testing.T, create func(*broker.Host) (broker.Extension, error), change func(*broker.Options)) Broker {
	t.Helper()
	o := broker.Options{
		Listen: broker.ListenOptions{HTTP: "127.0.0.1:0", TCP: "127.0.0.1:0"},
		Store:  broker.StoreOptions{Registry: s.Registry, Queue: s.Queue, Shared: s.Pipe != nil},
		Timing: broker.TimingOptions{Drain: 10 * time.Millisecond, Beat: beat},
	}
	o.Extensions = append(o.Extensions, create)
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
	started := Broker{Broker: b}
	stopped := false
	started.Stop = func() {
		cancel()
		if stopped {
			return
		}
		stopped = true
		if err := <-done; err != nil {
			t.Errorf("Run returned %v", err)
		}
	}
	t.Cleanup(started.Stop)
	timeout, cancelTimeout := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancelTimeout()
	if started.Addrs, err = b.Addrs(timeout); err != nil {
		t.Fatal(err)
	}
	await.True(t, "the broker is ready", func() bool {
		resp, err := http.Get("http://" + started.HTTP + "/readyz")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return started
}

// Object is a JSON object.
type Object = map[string]any

// Call makes an HTTP call and returns the status and the JSON object of the answer. header holds
// names and values in turn.
func (b Broker) Call(t *testing.T, method, path, body string, header ...string) (int, Object) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+b.HTTP+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
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
	var o Object
	if err := json.Unmarshal(raw, &o); err != nil {
		t.Fatalf("%s %s: %q is not a JSON object: %v", method, path, raw, err)
	}
	return resp.StatusCode, o
}

// OK makes a call and fails the test unless its status is 200.
func (b Broker) OK(t *testing.T, method, path, body string, header ...string) Object {
	t.Helper()
	status, o := b.Call(t, method, path, body, header...)
	if status != http.StatusOK {
		t.Fatalf("%s %s: %d %v", method, path, status, o)
	}
	return o
}

// Refused makes a call and fails the test unless its error has the code.
func (b Broker) Refused(t *testing.T, code, method, path, body string, header ...string) {
	t.Helper()
	_, o := b.Call(t, method, path, body, header...)
	if e, _ := o["error"].(Object); e["code"] != code {
		t.Fatalf("%s %s: %v, want the error %s", method, path, o, code)
	}
}
