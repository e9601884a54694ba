package redispipe

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redistest"
)

var (
	single   *redistest.Server
	cluster  *redistest.Cluster
	prefixes atomic.Int64
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m, &single, &cluster)) }

// prefix sets the keys of a test apart from those of others.
func prefix() string { return fmt.Sprintf("t%d:", prefixes.Add(1)) }

// trip is one call of Observe.
type trip struct {
	commands int
	err      error
}

// gate is a hook of the client that holds round trips until the test lets them go.
type gate struct {
	arrived chan struct{}
	release chan struct{}
}

func newGate(client redis.UniversalClient) *gate {
	g := &gate{arrived: make(chan struct{}), release: make(chan struct{})}
	client.AddHook(g)
	return g
}

func (g *gate) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (g *gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (g *gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if name := cmds[0].Name(); name != "hello" && name != "client" { // those greet on a new connection
			g.arrived <- struct{}{}
			<-g.release
		}
		return next(ctx, cmds)
	}
}

// one lets one round trip through.
func (g *gate) one() {
	<-g.arrived
	g.release <- struct{}{}
}

// trips collects what Observe is told.
type trips struct {
	mu  sync.Mutex // guards all
	all []trip
}

func (r *trips) observe(_ time.Duration, commands int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, trip{commands, err})
}

func (r *trips) sizes() (sizes []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, trip := range r.all {
		sizes = append(sizes, trip.commands)
	}
	return sizes
}

func (r *trips) want(t *testing.T, sizes ...int) {
	t.Helper()
	if got := r.sizes(); !slices.Equal(got, sizes) {
		t.Errorf("round trips of %v commands, want %v", got, sizes)
	}
}

// caller makes calls on goroutines of their own, each of which has queued when go returns.
type caller struct {
	t    *testing.T
	pipe *Pipe
	sync.WaitGroup
}

// later makes one call; queued is how many calls wait for a round trip then.
func (c *caller) later(queued int, call func()) {
	c.Go(call)
	until(c.pipe, func() bool { return len(c.pipe.plain.waiting) == queued })
}

// until returns when what it looks at, under the lock of p, is so.
func until(p *Pipe, so func() bool) {
	look := func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return so()
	}
	for !look() {
		runtime.Gosched()
	}
}
