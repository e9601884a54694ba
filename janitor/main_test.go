package janitor

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/events/recording"
	"switchboard/internal/redispipe"
	"switchboard/internal/redistest"
	"switchboard/queue"
	"switchboard/registry"
)

// The Redis servers are shared by all tests. Each test has its own prefix.
var (
	single   *redistest.Server
	cluster  *redistest.Cluster
	prefixes atomic.Int64
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m, &single, &cluster)) }

// testRegistry has the methods of a registry that the janitor and the tests call.
type testRegistry interface {
	Registry
	recording.Registry
	Join(ctx context.Context, s registry.Server) error
	Beat(ctx context.Context, s registry.Server) error
	Leave(ctx context.Context, server string) error
	HoldClients(ctx context.Context, server string, clients []string) error
	User(ctx context.Context, user string) ([]registry.Binding, error)
}

// testQueue has the methods of a queue that the janitor and the tests call.
type testQueue interface {
	Queue
	BindClients(ctx context.Context, claims []queue.Claim) []queue.Outcome[queue.Bound]
	AppendChannel(ctx context.Context, push queue.ChannelPush) (queue.Appended, error)
	ReadChannel(ctx context.Context, channel string, after int64, limit int) (queue.Page, error)
	ReadChannels(ctx context.Context, reads []queue.ChannelRead) []queue.Outcome[queue.Page]
	ReadStates(ctx context.Context, reads []queue.StateRead) []queue.Outcome[queue.StatePage]
}

// env is the registry and the queue of a test.
type env struct {
	*testing.T
	registry    testRegistry
	queue       testQueue
	expireLease func(server string)
}

// eachStore runs a test for each implementation of the stores.
func eachStore(t *testing.T, test func(e *env)) {
	t.Run("memory", func(t *testing.T) { test(memoryEnv(t)) })
	t.Run("redis", func(t *testing.T) { test(redisEnv(t, single.Client(t))) })
	t.Run("cluster", func(t *testing.T) { test(redisEnv(t, cluster.Client(t))) })
}

func memoryEnv(t *testing.T) *env {
	var offset atomic.Int64 // how far the clock of the registry is ahead
	r := registry.NewMemory(registry.Options{Now: func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }})
	serversOf := func(channel string) []string {
		servers, _ := r.ChannelServers(t.Context(), channel) // has no error
		return servers
	}
	e := &env{T: t, registry: r, queue: queue.NewMemory(queue.Options{}, serversOf)}
	e.expireLease = func(server string) {
		live, err := r.Servers(t.Context())
		e.ok(err)
		offset.Add(int64(10 * time.Second)) // all leases expire; renew the others
		for _, s := range live {
			if s.ID != server {
				e.ok(r.Beat(t.Context(), s))
			}
		}
	}
	return e
}

func redisEnv(t *testing.T, client redis.UniversalClient) *env {
	prefix := fmt.Sprintf("t%d:", prefixes.Add(1))
	pipe := redispipe.New(client, redispipe.Options{})
	e := &env{
		T:        t,
		registry: registry.NewRedis(pipe, registry.Options{Prefix: prefix}),
		queue:    queue.NewRedis(pipe, queue.Options{Prefix: prefix}),
	}
	e.expireLease = func(server string) {
		if n, err := client.Del(t.Context(), prefix+"s_{"+server+"}").Result(); n != 1 || err != nil {
			t.Fatalf("lease of %s: %d keys, %v", server, n, err)
		}
	}
	return e
}

func (e *env) ok(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// janitor returns a janitor with default options and a probe without answers. change may change the
// options.
func (e *env) janitor(change func(o *Options)) *Janitor {
	e.Helper()
	opts := Options{
		Registry: e.registry, Queue: e.queue,
		Probe: func(context.Context, string, string) bool { return false },
	}
	if change != nil {
		change(&opts)
	}
	j, err := New(opts)
	e.ok(err)
	return j
}

// addServer adds a live server. It holds the channels c0, c1 and so on, and the clients <id>-0 of
// user u0, <id>-1 of user u1 and so on.
func (e *env) addServer(id string, channels, clients int) {
	e.Helper()
	ctx := e.Context()
	e.ok(e.registry.Join(ctx, registry.Server{ID: id, Host: id + ":1"}))
	for i := range channels {
		e.ok(e.registry.BindChannel(ctx, id, fmt.Sprintf("c%d", i)))
	}
	for i := range clients {
		e.addClient(id, fmt.Sprintf("%s-%d", id, i), fmt.Sprintf("u%d", i))
	}
}

// addClient binds a client to a server as a session does.
func (e *env) addClient(server, client, user string) {
	e.Helper()
	ctx := e.Context()
	e.ok(e.registry.HoldClients(ctx, server, []string{client}))
	b := e.queue.BindClients(ctx, []queue.Claim{{Client: client, User: user, Server: server}})[0]
	e.ok(b.Err)
	if user != "" {
		e.ok(e.registry.BindUsers(ctx, []registry.UserBinding{{User: user, Binding: registry.Binding{Client: client, Server: server, Generation: b.Value.Generation}}})[0])
	}
}

// serverOf returns the server in the record of a client.
func (e *env) serverOf(client string) string {
	e.Helper()
	c, known, err := e.queue.Client(e.Context(), client)
	e.ok(err)
	if !known {
		e.Fatalf("client %s is unknown", client)
	}
	return c.Server
}

// bindings returns the bindings of a user as "client@server".
func (e *env) bindings(user string) (out []string) {
	e.Helper()
	all, err := e.registry.User(e.Context(), user)
	e.ok(err)
	for _, b := range all {
		out = append(out, b.Client+"@"+b.Server)
	}
	return out
}

func (e *env) serversOf(channel string) []string {
	e.Helper()
	servers, err := e.registry.ChannelServers(e.Context(), channel)
	e.ok(err)
	return servers
}

func (e *env) listed() []string {
	e.Helper()
	servers, err := e.registry.Listed(e.Context())
	e.ok(err)
	return servers
}

// round runs a round that must not fail.
func (e *env) round(round func(context.Context) (Report, error)) Report {
	e.Helper()
	report, err := round(e.Context())
	e.ok(err)
	return report
}
