package noting

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"switchboard/events"
	"switchboard/internal/redispipe"
	"switchboard/internal/redistest"
	"switchboard/registry"
)

// TestManyAreNotedTogether counts what 256 clients and 256 channels that are bound at once cost,
// and what of it are the notes: the same is bound without them first.
func TestManyAreNotedTogether(t *testing.T) {
	server, cluster := redistest.Start(t), redistest.StartCluster(t, 3)
	for _, c := range []struct {
		name   string
		client redis.UniversalClient
		nodes  []*redistest.Server
		runs   int // of the script, at most
	}{
		{"single", server.Client(t), []*redistest.Server{server}, 1},
		{"cluster", cluster.Client(t), cluster.Masters, events.Shards},
	} {
		t.Run(c.name, func(t *testing.T) {
			watch := &goroutines{}
			c.client.AddHook(watch)
			pipe := redispipe.New(c.client, redispipe.Options{})
			bare := registry.NewRedis(pipe, registry.Options{Prefix: "t:"})
			recorder := events.NewRecorder(events.NewRedis(pipe, events.StoreOptions{Prefix: "t:"}), nil)
			full := New(bare, recorder, zerolog.Nop())
			bind := func(r Registry, n int) cost {
				t.Helper()
				before := scripts(t, c.nodes)
				watch.reset()
				bindMany(t, r, n)
				return cost{scripts(t, c.nodes) - before, watch.most()}
			}
			bind(full, 64) // from here on every node knows the scripts
			without, with := bind(bare, 256), bind(full, 256)
			t.Logf("without notes: %+v, with notes: %+v", without, with)
			if n := with.scripts - without.scripts; n < 2 || n > 2*c.runs {
				t.Errorf("256 users and 256 channels were noted by %d runs of a script, want 2 to %d", n, 2*c.runs)
			}
			if n := with.goroutines - without.goroutines; n > 20 {
				t.Errorf("%d goroutines more than without notes", n)
			}
		})
	}
}

type cost struct{ scripts, goroutines int }

// BenchmarkBindMany binds 256 clients and as many channels, without notes and with them.
func BenchmarkBindMany(b *testing.B) {
	server := redistest.Start(b)
	pipe := redispipe.New(server.Client(b), redispipe.Options{})
	bare := registry.NewRedis(pipe, registry.Options{})
	full := New(bare, events.NewRecorder(events.NewRedis(pipe, events.StoreOptions{}), nil), zerolog.Nop())
	for _, c := range []struct {
		name string
		to   Registry
	}{{"bare", bare}, {"noted", full}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				bindMany(b, c.to, 256)
			}
		})
	}
}

func bindMany(t testing.TB, r Registry, n int) {
	t.Helper()
	var users []registry.UserBinding
	var channels []string
	for i := range n {
		b := registry.Binding{Client: fmt.Sprint("phone-", i), Server: "a", Generation: 1}
		users = append(users, registry.UserBinding{User: fmt.Sprint("user-", i), Binding: b})
		channels = append(channels, fmt.Sprint("channel-", i))
	}
	for _, err := range append(r.BindUsers(t.Context(), users), r.BindChannels(t.Context(), "a", channels)...) {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// runs finds in INFO commandstats how often a script was run.
var runs = regexp.MustCompile(`cmdstat_eval(?:sha)?:calls=(\d+)`)

func scripts(t *testing.T, nodes []*redistest.Server) (all int) {
	t.Helper()
	for _, node := range nodes {
		stats, err := node.Do(t.Context(), "info", "commandstats").Text()
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range runs.FindAllStringSubmatch(stats, -1) {
			n, err := strconv.Atoi(found[1])
			if err != nil {
				t.Fatal(err)
			}
			all += n
		}
	}
	return all
}

// goroutines is a hook that sees how many there are whenever something is sent.
type goroutines struct {
	mu  sync.Mutex // guards the field below
	max int
}

func (g *goroutines) reset() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.max = 0
}

func (g *goroutines) most() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.max
}

func (g *goroutines) DialHook(next redis.DialHook) redis.DialHook { return next }

func (g *goroutines) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (g *goroutines) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		g.mu.Lock()
		g.max = max(g.max, runtime.NumGoroutine())
		g.mu.Unlock()
		return next(ctx, cmds)
	}
}
