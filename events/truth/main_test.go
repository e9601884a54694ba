package truth

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/events"
	"switchboard/internal/redispipe"
	"switchboard/internal/redistest"
	"switchboard/queue"
	"switchboard/registry"
)

// The Redis servers are shared by all tests. Each test has its own prefix.
var (
	server   *redistest.Server
	cluster  *redistest.Cluster
	prefixes atomic.Int64
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m, &server, &cluster)) }

// testRegistry has the methods of a registry that Truth and the tests call.
type testRegistry interface {
	Registry
	Join(ctx context.Context, s registry.Server) error
	BindChannel(ctx context.Context, server, channel string) error
	UnbindChannel(ctx context.Context, server, channel string) error
	BindUsers(ctx context.Context, list []registry.UserBinding) []error
	ReleaseUser(ctx context.Context, user, client string, generation int64) (watchers []string, err error)
	DeclareDead(ctx context.Context, server string) (dead bool, err error)
	Forget(ctx context.Context, server string) error
}

// testQueue has the methods of a queue that Truth and the tests call.
type testQueue interface {
	Queue
	BindClients(ctx context.Context, claims []queue.Claim) []queue.Outcome[queue.Bound]
	Unbind(ctx context.Context, client string, generation int64) error
	AppendClient(ctx context.Context, push queue.ClientPush) (queue.ClientAppended, error)
	Ack(ctx context.Context, client string, generation, id int64) (int, error)
	AppendChannel(ctx context.Context, push queue.ChannelPush) (queue.Appended, error)
	AppendChannels(ctx context.Context, pushes []queue.ChannelPush) []queue.Outcome[queue.Appended]
}

// stores is the registry and the queue of a test.
type stores struct {
	*testing.T
	testRegistry
	queue       testQueue
	expireLease func(server string)
	events      events.Store // nil for the stores in memory
}

// eachStore runs a test for each implementation of the stores.
func eachStore(t *testing.T, test func(s *stores)) {
	t.Run("memory", func(t *testing.T) {
		now := time.Now()
		r := registry.NewMemory(registry.Options{Now: func() time.Time { return now }})
		expire := func(server string) {
			live, err := r.Servers(t.Context())
			ok(t, err)
			now = now.Add(10 * time.Second) // all leases expire; renew the others
			for _, s := range live {
				if s.ID != server {
					ok(t, r.Beat(t.Context(), s))
				}
			}
		}
		test(&stores{t, r, queue.NewMemory(queue.Options{}, nil), expire, nil})
	})
	t.Run("redis", func(t *testing.T) { test(overRedis(t, server.Client(t))) })
	t.Run("cluster", func(t *testing.T) { test(overRedis(t, cluster.Client(t))) })
}

func overRedis(t *testing.T, client redis.UniversalClient) *stores {
	prefix := fmt.Sprintf("t%d:", prefixes.Add(1))
	pipe := redispipe.New(client, redispipe.Options{})
	return &stores{
		t, registry.NewRedis(pipe, registry.Options{Prefix: prefix}), queue.NewRedis(pipe, queue.Options{Prefix: prefix}),
		func(server string) { ok(t, client.Del(t.Context(), prefix+"s_{"+server+"}").Err()) },
		events.NewRedis(pipe, events.StoreOptions{Prefix: prefix}),
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *stores) join(servers ...string) {
	s.Helper()
	for _, server := range servers {
		ok(s.T, s.Join(s.Context(), registry.Server{ID: server, Host: server + ":1"}))
	}
}

// bind binds a client of a user to a server.
func (s *stores) bind(user, client, server string) (generation int64) {
	s.Helper()
	b := s.queue.BindClients(s.Context(), []queue.Claim{{Client: client, User: user, Server: server}})[0]
	ok(s.T, b.Err)
	ok(s.T, s.BindUsers(s.Context(), []registry.UserBinding{{User: user, Binding: registry.Binding{Client: client, Server: server, Generation: b.Value.Generation}}})[0])
	return b.Value.Generation
}
