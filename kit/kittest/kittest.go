// Package kittest runs brokers with extensions over each kind of store, for tests.
package kittest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
	"switchboard/internal/redistest"
	"switchboard/queue"
	"switchboard/registry"
)

// Timeout is a safety net: a test that waits this long has failed.
const Timeout = 20 * time.Second

// The servers of the tests of a package, see [Main].
var (
	Redis   *redistest.Server
	Cluster *redistest.Cluster
)

// Main is the body of a TestMain. It starts Redis and Cluster, and returns the exit code.
func Main(m *testing.M) int {
	return redistest.Main(m, &Redis, &Cluster,
		// Those of gnet's worker pool, which last as long as the process.
		goleak.IgnoreTopFunction("github.com/panjf2000/ants/v2.(*poolCommon).purgeStaleWorkers"),
		goleak.IgnoreTopFunction("github.com/panjf2000/ants/v2.(*poolCommon).ticktock"),
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*goWorker).run.func1"))
}

// Brokers are the brokers of a test, which share a store. In memory there is one broker.
type Brokers struct {
	List []*Broker
	// Memory is set if the store is in memory. Its clock moves when Advance is called, too.
	Memory bool
	// Cluster is set if the store is a Redis Cluster.
	Cluster bool

	ahead  atomic.Int64           // how far the clock of the store is ahead, in memory
	before atomic.Pointer[func()] // see Before

	// Reads and Changes count the calls that read states, and those that change one, in memory.
	Reads, Changes atomic.Int64
}

// Before makes the store, which must be in memory, call f before the next change of a channel. So a
// test can change what an operation has read.
func (b *Brokers) Before(f func()) { b.before.Store(&f) }

// interrupted is a queue that calls Brokers.before.
type interrupted struct {
	broker.Queue
	brokers *Brokers
}

// AppendChannel implements broker.Queue.
func (q interrupted) AppendChannel(ctx context.Context, p queue.ChannelPush) (queue.Appended, error) {
	q.brokers.Changes.Add(1)
	if f := q.brokers.before.Swap(nil); f != nil {
		(*f)()
	}
	return q.Queue.AppendChannel(ctx, p)
}

// Broker is a running broker.
type Broker struct {
	*broker.Broker
	broker.Addrs

	cancel context.CancelFunc
	done   chan error // receives the result of Run
}

// URL returns the URL for clients over WebSocket.
func (b *Broker) URL() string { return "ws://" + b.HTTP + "/ws" }

// Stop begins the shutdown of the broker, which closes its connections.
func (b *Broker) Stop() { b.cancel() }

// At returns a broker by its number, modulo the number of brokers.
func (b *Brokers) At(i int) *Broker { return b.List[i%len(b.List)] }

// Advance advances the clock of the store. It must be in memory.
func (b *Brokers) Advance(d time.Duration) { b.ahead.Add(int64(d)) }

// ReadStates implements broker.Queue.
func (q interrupted) ReadStates(ctx context.Context, reads []queue.StateRead) []queue.Outcome[queue.StatePage] {
	q.brokers.Reads.Add(1)
	return q.Queue.ReadStates(ctx, reads)
}

// Each runs a test over a store in memory, Redis and a Redis Cluster, with n brokers each. options
// changes the options of a broker; nil changes nothing.
func Each(t *testing.T, n int, options func(*broker.Options), test func(*testing.T, *Brokers)) {
	t.Run("memory", func(t *testing.T) {
		b := &Brokers{Memory: true}
		s := NewMemoryWith(queue.Options{Now: func() time.Time { return time.Now().Add(time.Duration(b.ahead.Load())) }})
		s.Queue = interrupted{s.Queue, b}
		b.List = []*Broker{start(t, s.StoreOptions, options)}
		test(t, b)
	})
	for name, client := range map[string]func(testing.TB) redis.UniversalClient{
		"redis":   func(tb testing.TB) redis.UniversalClient { return Redis.Client(tb) },
		"cluster": func(tb testing.TB) redis.UniversalClient { return Cluster.Client(tb) },
	} {
		t.Run(name, func(t *testing.T) {
			prefix := newPrefix()
			b := &Brokers{Cluster: name == "cluster"}
			for range n {
				b.List = append(b.List, start(t, openRedis(client(t), prefix, registry.Options{}).StoreOptions, options))
			}
			for _, one := range b.List {
				one.awaitReady(t)
			}
			test(t, b)
		})
	}
}

// start runs a broker until the test ends.
func start(t testing.TB, store broker.StoreOptions, options func(*broker.Options)) *Broker {
	t.Helper()
	b, err := run(store, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.stopAndWait(); err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
	return b
}

// run runs a broker, and returns when it listens.
func run(store broker.StoreOptions, options func(*broker.Options)) (*Broker, error) {
	o := broker.Options{
		Name:   "b",
		Listen: broker.ListenOptions{HTTP: "127.0.0.1:0", TCP: "127.0.0.1:0"},
		Store:  store,
		// Brokers that start together know each other after a beat.
		Timing: broker.TimingOptions{Drain: 10 * time.Millisecond, Beat: 100 * time.Millisecond},
	}
	if options != nil {
		options(&o)
	}
	b, err := broker.New(o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	addrsCtx, cancelAddrs := context.WithTimeout(ctx, Timeout)
	defer cancelAddrs()
	addrs, err := b.Addrs(addrsCtx)
	if err != nil {
		cancel()
		return nil, errors.Join(err, <-done)
	}
	return &Broker{b, addrs, cancel, done}, nil
}

// stopAndWait ends the broker. It returns the result of its Run.
func (b *Broker) stopAndWait() error {
	b.cancel()
	return <-b.done
}

// awaitReady waits until /readyz answers with 200.
func (b *Broker) awaitReady(t testing.TB) {
	t.Helper()
	await.True(t, "readyz is 200", func() bool {
		resp, err := http.Get("http://" + b.HTTP + "/readyz")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// Connect returns a connected client of a user, or of none. It is closed when the test ends.
func (b *Broker) Connect(t testing.TB, user string, change func(*client.Options)) *client.Client {
	t.Helper()
	o := client.Options{URLs: []string{"tcp://" + b.TCP}, Client: "device", User: user}
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
	t.Cleanup(func() { cancel(); <-done })
	return c
}

// Call makes an HTTP call with a JSON body, or without one. header holds names and values. It
// returns the status, and decodes the answer into the value to which into points; nil ignores it.
func (b *Broker) Call(t testing.TB, method, path, body string, into any, header ...string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+b.HTTP+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
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
	if into != nil {
		if err := json.NewDecoder(bytes.NewReader(raw)).Decode(into); err != nil {
			t.Fatalf("%s %s: %q: %v", method, path, raw, err)
		}
	}
	return resp.StatusCode
}

// Object is a JSON object.
type Object = map[string]any

// OK makes a call and fails the test unless its status is 200. It returns the answer.
func (b *Broker) OK(t testing.TB, method, path, body string, header ...string) Object {
	t.Helper()
	var o Object
	if status := b.Call(t, method, path, body, &o, header...); status != http.StatusOK {
		t.Fatalf("%s %s: %d %v", method, path, status, o)
	}
	return o
}

// Refused makes a call and fails the test unless its error has the code.
func (b *Broker) Refused(t testing.TB, code, method, path, body string, header ...string) {
	t.Helper()
	var o Object
	b.Call(t, method, path, body, &o, header...)
	if e, _ := o["error"].(Object); e["code"] != code {
		t.Fatalf("%s %s: %v, want the error %s", method, path, o, code)
	}
}
