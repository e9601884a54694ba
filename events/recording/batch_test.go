package recording

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

// TestBatchCost counts the script runs and goroutines that recording adds when 256 clients and 256
// channels are bound at once. It binds them first without a recorder, then with one.
func TestBatchCost(t *testing.T) {
	server, cluster := redistest.Start(t), redistest.StartCluster(t, 3)
	for _, c := range []struct {
		name   string
		client redis.UniversalClient
		nodes  []*redistest.Server
		runs   int // largest number of script runs for the users; the same for the channels
	}{
		{"single", server.Client(t), []*redistest.Server{server}, 1},
		{"cluster", cluster.Client(t), cluster.Masters, events.Shards},
	} {
		t.Run(c.name, func(t *testing.T) {
			goroutines := &goroutineCounter{}
			c.client.AddHook(goroutines)
			pipe := redispipe.New(c.client, redispipe.Options{})
			plain := registry.NewRedis(pipe, registry.Options{Prefix: "t:"})
			recorder := events.NewRecorder(events.NewRedis(pipe, events.StoreOptions{Prefix: "t:"}), nil)
			recorded := Wrap(plain, recorder, zerolog.Nop())
			bind := func(r Registry, n int) cost {
				t.Helper()
				before := scriptRuns(t, c.nodes)
				goroutines.reset()
				bindMany(t, r, n)
				return cost{scriptRuns(t, c.nodes) - before, goroutines.highest()}
			}
			bind(recorded, 64) // loads the scripts on each node
			without, with := bind(plain, 256), bind(recorded, 256)
			t.Logf("without a recorder: %+v, with a recorder: %+v", without, with)
			if n := with.scriptRuns - without.scriptRuns; n < 2 || n > 2*c.runs {
				t.Errorf("recording 256 users and 256 channels took %d script runs, want 2 to %d", n, 2*c.runs)
			}
			if n := with.goroutines - without.goroutines; n > 20 {
				t.Errorf("%d goroutines more than without a recorder", n)
			}
		})
	}
}

type cost struct{ scriptRuns, goroutines int }

// BenchmarkBindMany binds 256 clients and 256 channels, without a recorder and with one.
func BenchmarkBindMany(b *testing.B) {
	server := redistest.Start(b)
	pipe := redispipe.New(server.Client(b), redispipe.Options{})
	plain := registry.NewRedis(pipe, registry.Options{})
	recorded := Wrap(plain, events.NewRecorder(events.NewRedis(pipe, events.StoreOptions{}), nil), zerolog.Nop())
	for _, c := range []struct {
		name     string
		registry Registry
	}{{"plain", plain}, {"recorded", recorded}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				bindMany(b, c.registry, 256)
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

// scriptCalls matches the number of script runs in INFO commandstats.
var scriptCalls = regexp.MustCompile(`cmdstat_eval(?:sha)?:calls=(\d+)`)

// scriptRuns returns how often all nodes have run a script.
func scriptRuns(t *testing.T, nodes []*redistest.Server) (total int) {
	t.Helper()
	for _, node := range nodes {
		stats, err := node.Do(t.Context(), "info", "commandstats").Text()
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range scriptCalls.FindAllStringSubmatch(stats, -1) {
			n, err := strconv.Atoi(match[1])
			if err != nil {
				t.Fatal(err)
			}
			total += n
		}
	}
	return total
}

// goroutineCounter is a redis.Hook that records the highest number of goroutines at a pipeline.
type goroutineCounter struct {
	mu  sync.Mutex // guards the field below
	max int
}

func (g *goroutineCounter) reset() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.max = 0
}

func (g *goroutineCounter) highest() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.max
}

func (g *goroutineCounter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (g *goroutineCounter) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (g *goroutineCounter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		g.mu.Lock()
		g.max = max(g.max, runtime.NumGoroutine())
		g.mu.Unlock()
		return next(ctx, cmds)
	}
}
