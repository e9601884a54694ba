package janitor

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/events/noting"
	"switchboard/internal/redispipe"
	"switchboard/internal/redistest"
	"switchboard/queue"
	"switchboard/registry"
)

// The Redis processes of all tests, started once; each test has a prefix of its own.
var (
	single   *redistest.Server
	cluster  *redistest.Cluster
	prefixes atomic.Int64
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m, &single, &cluster)) }

// testRegistry is what the janitor and the tests call of a registry.
type testRegistry interface {
	Registry
	noting.Registry
	Join(ctx context.Context, s registry.Server) error
	Beat(ctx context.Context, s registry.Server) error
	Leave(ctx context.Context, server string) error
	HoldClients(ctx context.Context, server string, clients []string) error
	User(ctx context.Context, user string) ([]registry.Binding, error)
}

// testQueue is what the janitor and the tests call of a queue.
type testQueue interface {
	Queue
	BindClients(ctx context.Context, claims []queue.Claim) []queue.Outcome[queue.Bound]
	AppendChannel(ctx context.Context, push queue.ChannelPush) (queue.Appended, error)
	ReadChannel(ctx context.Context, channel string, after int64, limit int) (queue.Page, error)
}

// world is the two stores of one test, with what time does to them.
type world struct {
	*testing.T
	registry  testRegistry
	queue     testQueue
	loseLease func(server string)
}

// eachWorld runs a test over every implementation of the stores.
func eachWorld(t *testing.T, test func(w *world)) {
	t.Run("memory", func(t *testing.T) { test(memoryWorld(t)) })
	t.Run("redis", func(t *testing.T) { test(redisWorld(t, single.Client(t))) })
	t.Run("cluster", func(t *testing.T) { test(redisWorld(t, cluster.Client(t))) })
}

func memoryWorld(t *testing.T) *world {
	var lost atomic.Int64 // the registry's clock is ahead by this
	r := registry.NewMemory(registry.Options{Now: func() time.Time { return time.Now().Add(time.Duration(lost.Load())) }})
	w := &world{T: t, registry: r, queue: queue.NewMemory(queue.Options{}, nil)}
	w.loseLease = func(server string) {
		live, err := r.Servers(t.Context())
		w.ok(err)
		lost.Add(int64(10 * time.Second)) // all leases end; the others get theirs again
		for _, s := range live {
			if s.ID != server {
				w.ok(r.Beat(t.Context(), s))
			}
		}
	}
	return w
}

func redisWorld(t *testing.T, client redis.UniversalClient) *world {
	prefix := fmt.Sprintf("t%d:", prefixes.Add(1))
	pipe := redispipe.New(client, redispipe.Options{})
	w := &world{
		T:        t,
		registry: registry.NewRedis(pipe, registry.Options{Prefix: prefix}),
		queue:    queue.NewRedis(pipe, queue.Options{Prefix: prefix}),
	}
	w.loseLease = func(server string) {
		if n, err := client.Del(t.Context(), prefix+"s_{"+server+"}").Result(); n != 1 || err != nil {
			t.Fatalf("lease of %s: %d keys, %v", server, n, err)
		}
	}
	return w
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// janitor has default options, which change may change, and a probe that nobody answers.
func (w *world) janitor(change func(o *Options)) *Janitor {
	w.Helper()
	opts := Options{
		Registry: w.registry, Queue: w.queue,
		Probe: func(context.Context, string, string) bool { return false },
	}
	if change != nil {
		change(&opts)
	}
	j, err := New(opts)
	w.ok(err)
	return j
}

// server is a live one that holds the channels c0, c1, … and the clients <id>-0, … of users u0, ….
func (w *world) server(id string, channels, clients int) {
	w.Helper()
	ctx := w.Context()
	w.ok(w.registry.Join(ctx, registry.Server{ID: id, Host: id + ":1"}))
	for i := range channels {
		w.ok(w.registry.BindChannel(ctx, id, fmt.Sprintf("c%d", i)))
	}
	for i := range clients {
		w.client(id, fmt.Sprintf("%s-%d", id, i), fmt.Sprintf("u%d", i))
	}
}

// client is one bound to server as a session does it.
func (w *world) client(server, client, user string) {
	w.Helper()
	ctx := w.Context()
	w.ok(w.registry.HoldClients(ctx, server, []string{client}))
	b := w.queue.BindClients(ctx, []queue.Claim{{Client: client, User: user, Server: server}})[0]
	w.ok(b.Err)
	if user != "" {
		w.ok(w.registry.BindUsers(ctx, []registry.UserBinding{{User: user, Binding: registry.Binding{Client: client, Server: server, Generation: b.Value.Generation}}})[0])
	}
}

// holder is who c_{client} says holds the client.
func (w *world) holder(client string) string {
	w.Helper()
	c, known, err := w.queue.Client(w.Context(), client)
	w.ok(err)
	if !known {
		w.Fatalf("client %s is unknown", client)
	}
	return c.Server
}

// bindings are the user's clients as "client@server".
func (w *world) bindings(user string) (out []string) {
	w.Helper()
	all, err := w.registry.User(w.Context(), user)
	w.ok(err)
	for _, b := range all {
		out = append(out, b.Client+"@"+b.Server)
	}
	return out
}

func (w *world) channelServers(channel string) []string {
	w.Helper()
	servers, err := w.registry.ChannelServers(w.Context(), channel)
	w.ok(err)
	return servers
}

func (w *world) listed() []string {
	w.Helper()
	servers, err := w.registry.Listed(w.Context())
	w.ok(err)
	return servers
}

// round makes one that must be without error.
func (w *world) round(round func(context.Context) (Report, error)) Report {
	w.Helper()
	did, err := round(w.Context())
	w.ok(err)
	return did
}
