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

// prefix returns a key prefix that no other test has.
func prefix() string { return fmt.Sprintf("t%d:", prefixes.Add(1)) }

// trip is one call of Observe.
type trip struct {
	commands int
	err      error
}

// gate is a hook that blocks round trips until the test releases them.
type gate struct {
	blocked chan struct{}
	release chan struct{}
}

func newGate(client redis.UniversalClient) *gate {
	g := &gate{blocked: make(chan struct{}), release: make(chan struct{})}
	client.AddHook(g)
	return g
}

func (g *gate) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (g *gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (g *gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if name := cmds[0].Name(); name != "hello" && name != "client" { // sent on a new connection
			g.blocked <- struct{}{}
			<-g.release
		}
		return next(ctx, cmds)
	}
}

// pass lets one round trip through.
func (g *gate) pass() {
	<-g.blocked
	g.release <- struct{}{}
}

// trips collects the calls of Observe.
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

// caller makes calls on goroutines of their own.
type caller struct {
	t    *testing.T
	pipe *Pipe
	sync.WaitGroup
}

// start starts one call and returns when queued calls wait for a round trip.
func (c *caller) start(queued int, call func()) {
	c.Go(call)
	until(c.pipe, func() bool { return len(waitingLocked(c.pipe)) == queued })
}

// waitingLocked returns the calls that wait for a round trip.
func waitingLocked(p *Pipe) (waiting []*call) {
	for _, l := range p.lanes {
		waiting = append(waiting, l.waiting...)
	}
	return waiting
}

// until returns when the condition, checked under the lock of p, is true.
func until(p *Pipe, condition func() bool) {
	check := func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return condition()
	}
	for !check() {
		runtime.Gosched()
	}
}
