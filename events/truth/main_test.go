package truth

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
	"switchboard/internal/redistest"
	"switchboard/queue"
	"switchboard/registry"
)

// The servers of all tests, started once; every test has a prefix of its own.
var (
	server   *redistest.Server
	cluster  *redistest.Cluster
	prefixes atomic.Int64
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m, &server, &cluster)) }

// testRegistry is what the code under test and the tests call of a registry.
type testRegistry interface {
	Registry
	Join(ctx context.Context, s registry.Server) error
	BindChannel(ctx context.Context, server, channel string) error
	UnbindChannel(ctx context.Context, server, channel string) error
	BindUsers(ctx context.Context, list []registry.UserBinding) []error
	ReleaseUser(ctx context.Context, user, client string, generation int64) error
	DeclareDead(ctx context.Context, server string) (buried bool, err error)
	Forget(ctx context.Context, server string) error
}

// testQueue is what the code under test and the tests call of a queue.
type testQueue interface {
	Queue
	BindClients(ctx context.Context, claims []queue.Claim) []queue.Outcome[queue.Bound]
	Unbind(ctx context.Context, client string, generation int64) error
	AppendClient(ctx context.Context, push queue.ClientPush) (queue.ClientAppended, error)
	Ack(ctx context.Context, client string, generation, id int64) (int, error)
}

// world is both stores of a test.
type world struct {
	*testing.T
	testRegistry
	queue     testQueue
	loseLease func(server string)
}

func eachWorld(t *testing.T, test func(w *world)) {
	t.Run("memory", func(t *testing.T) {
		now := time.Now()
		r := registry.NewMemory(registry.Options{Now: func() time.Time { return now }})
		lose := func(lost string) {
			live, err := r.Servers(t.Context())
			ok(t, err)
			now = now.Add(10 * time.Second) // all leases end; the others get theirs again
			for _, s := range live {
				if s.ID != lost {
					ok(t, r.Beat(t.Context(), s))
				}
			}
		}
		test(&world{t, r, queue.NewMemory(queue.Options{}, nil), lose})
	})
	t.Run("redis", func(t *testing.T) { test(overRedis(t, server.Client(t))) })
	t.Run("cluster", func(t *testing.T) { test(overRedis(t, cluster.Client(t))) })
}

func overRedis(t *testing.T, client redis.UniversalClient) *world {
	prefix := fmt.Sprintf("t%d:", prefixes.Add(1))
	pipe := redispipe.New(client, redispipe.Options{})
	return &world{
		t, registry.NewRedis(pipe, registry.Options{Prefix: prefix}), queue.NewRedis(pipe, queue.Options{Prefix: prefix}),
		func(server string) { ok(t, client.Del(t.Context(), prefix+"s_{"+server+"}").Err()) },
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) join(servers ...string) {
	w.Helper()
	for _, server := range servers {
		ok(w.T, w.Join(w.Context(), registry.Server{ID: server, Host: server + ":1"}))
	}
}

// bind makes server the owner of a client of the user.
func (w *world) bind(user, client, server string) (generation int64) {
	w.Helper()
	b := w.queue.BindClients(w.Context(), []queue.Claim{{Client: client, User: user, Server: server}})[0]
	ok(w.T, b.Err)
	ok(w.T, w.BindUsers(w.Context(), []registry.UserBinding{{User: user, Binding: registry.Binding{Client: client, Server: server, Generation: b.Value.Generation}}})[0])
	return b.Value.Generation
}
