package redispipe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redistest"
)

func script(t *testing.T, source string) *Script {
	t.Helper()
	return MustScript(fstest.MapFS{"lua/x.lua": {Data: []byte("#!lua\n" + source)}}, "x")
}

func incr(ctx context.Context, p *Pipe, key string) (int64, error) {
	cmd := redis.NewIntCmd(ctx, "incr", key)
	if err := p.Do(ctx, cmd); err != nil {
		return 0, err
	}
	return cmd.Val(), nil
}

// TestRoundTripsAreShared holds one round trip: what comes meanwhile goes together.
func TestRoundTripsAreShared(t *testing.T) {
	client := single.Client(t)
	g := newGate(client)
	seen := &trips{}
	p := New(client, Options{MaxInFlight: 1, MaxBatch: 40, Observe: seen.observe})
	key := prefix() + "n"
	calls := &caller{t: t, pipe: p}
	call := func() {
		if _, err := incr(t.Context(), p, key); err != nil {
			t.Error(err)
		}
	}
	calls.Go(call)
	<-g.arrived
	for i := range 99 {
		calls.later(i+1, call)
	}
	g.release <- struct{}{}
	for range 3 {
		g.one()
	}
	calls.Wait()
	seen.want(t, 1, 40, 40, 19)
	if n, err := single.Client(t).Get(t.Context(), key).Int(); n != 100 || err != nil {
		t.Errorf("%d commands ran, %v; want 100", n, err)
	}
}

// TestASecondRoundTrip goes out while the first one waits for its answer.
func TestASecondRoundTrip(t *testing.T) {
	client := single.Client(t)
	g := newGate(client)
	p := New(client, Options{})
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() {
			if _, err := incr(t.Context(), p, prefix()); err != nil {
				t.Error(err)
			}
		})
		<-g.arrived
	}
	g.release <- struct{}{}
	g.release <- struct{}{}
	calls.Wait()
}

func TestManyCallers(t *testing.T) {
	for name, client := range map[string]redis.UniversalClient{"server": single.Client(t), "cluster": cluster.Client(t)} {
		t.Run(name, func(t *testing.T) {
			p := New(client, Options{})
			s := script(t, `return redis.call('INCRBY', KEYS[1], ARGV[1])`)
			pre := prefix()
			var calls sync.WaitGroup
			for i := range 50 {
				calls.Go(func() {
					key := fmt.Sprintf("%s{%d}", pre, i)
					for n := range int64(20) {
						if got, err := incr(t.Context(), p, key); err != nil || got != 11*n+1 {
							t.Errorf("INCR %s: %d, %v; want %d", key, got, err, 11*n+1)
						}
						if got, err := p.Eval(t.Context(), s, []string{key}, 10); err != nil || got != 11*n+11 {
							t.Errorf("script on %s: %v, %v; want %d", key, got, err, 11*n+11)
						}
					}
				})
			}
			calls.Wait()
		})
	}
}

// TestUnknownScripts are sent with their text inside the same call, once each, and the
// neighbours are not run again.
func TestUnknownScripts(t *testing.T) {
	client := single.Client(t)
	g := newGate(client)
	seen := &trips{}
	p := New(client, Options{MaxInFlight: 1, Observe: seen.observe})
	pre := prefix()
	s := script(t, `return redis.call('INCR', KEYS[1])`)
	if err := single.Client(t).ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	eval := func() {
		if got, err := p.Eval(t.Context(), s, []string{pre + "script"}); err != nil {
			t.Errorf("%v, %v", got, err)
		}
	}
	calls := &caller{t: t, pipe: p}
	calls.Go(func() { _, _ = incr(t.Context(), p, pre+"first") })
	<-g.arrived
	for i := range 3 {
		calls.later(2*i+1, eval)
		calls.later(2*i+2, func() { _, _ = incr(t.Context(), p, pre+"plain") })
	}
	g.release <- struct{}{}
	g.one()
	g.one()
	calls.Wait()
	seen.want(t, 1, 6, 3)
	for _, key := range []string{"script", "plain"} {
		if n, err := single.Client(t).Get(t.Context(), pre+key).Int(); n != 3 || err != nil {
			t.Errorf("%s ran %d times, %v; want 3", key, n, err)
		}
	}
	go g.one()
	eval()
	seen.want(t, 1, 6, 3, 1) // known by now
}

func TestErrorsStayWithTheirCommand(t *testing.T) {
	client := single.Client(t)
	g := newGate(client)
	seen := &trips{}
	p := New(client, Options{MaxInFlight: 1, Observe: seen.observe})
	pre := prefix()
	if err := single.Client(t).LPush(t.Context(), pre+"list", "x").Err(); err != nil {
		t.Fatal(err)
	}
	calls := &caller{t: t, pipe: p}
	calls.Go(func() { _, _ = incr(t.Context(), p, pre+"first") })
	<-g.arrived
	for i, test := range []struct {
		call func() error
		want string
	}{
		{func() error { _, err := incr(t.Context(), p, pre+"list"); return err }, "WRONGTYPE"},
		{func() error { _, err := incr(t.Context(), p, pre+"a"); return err }, ""},
		{func() error { return p.Do(t.Context(), redis.NewStringCmd(t.Context(), "get", pre+"none")) }, redis.Nil.Error()},
		{func() error {
			_, err := p.Eval(t.Context(), script(t, `return redis.error_reply('MINE no')`), []string{pre + "a"})
			return err
		}, "MINE no"},
		{func() error { return p.Do(t.Context(), redis.NewStatusCmd(t.Context(), "nonsense")) }, "ERR unknown command"},
		{func() error { _, err := incr(t.Context(), p, pre+"a"); return err }, ""},
	} {
		calls.later(i+1, func() {
			err := test.call()
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("call %d: %v, want %q", i, err, test.want)
			}
		})
	}
	g.release <- struct{}{}
	g.one() // all
	g.one() // the script, with its text
	calls.Wait()
	for _, trip := range seen.all {
		if trip.err != nil {
			t.Errorf("Redis answered, but Observe is told of %v", trip.err)
		}
	}
}

func TestContextEnds(t *testing.T) {
	client := single.Client(t)
	g := newGate(client)
	seen := &trips{}
	p := New(client, Options{MaxInFlight: 1, Observe: seen.observe})
	pre := prefix()
	ctx, cancel := context.WithCancel(t.Context())
	calls := &caller{t: t, pipe: p}
	wait := func(key string) func() {
		return func() {
			if _, err := incr(ctx, p, pre+key); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v, want the context's error", key, err)
			}
		}
	}
	calls.Go(wait("under way"))
	<-g.arrived
	calls.later(1, wait("waiting"))
	cancel()
	calls.Wait() // although no round trip is over
	if _, err := incr(ctx, p, pre+"late"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the context's error", err)
	}
	calls.later(2, func() { _, _ = incr(t.Context(), p, pre+"other") })
	g.release <- struct{}{}
	g.one()
	calls.Wait()
	seen.want(t, 1, 1) // what was given up before it was sent, and what came too late, were not
}

// hang is a hook under which Redis never answers.
type hang struct{ gate }

func (*hang) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		<-ctx.Done()
		for _, cmd := range cmds {
			cmd.SetErr(ctx.Err())
		}
		return ctx.Err()
	}
}

func TestTimeout(t *testing.T) {
	client := single.Client(t)
	client.AddHook(&hang{})
	seen := &trips{}
	p := New(client, Options{Timeout: time.Millisecond, Observe: seen.observe})
	if _, err := incr(t.Context(), p, prefix()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want a deadline", err)
	}
	if len(seen.all) != 1 || !errors.Is(seen.all[0].err, context.DeadlineExceeded) {
		t.Errorf("Observe is told %v", seen.all)
	}
}

func TestRedisIsGone(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	seen := &trips{}
	p := New(client, Options{MaxInFlight: 1, Observe: seen.observe})
	if n, err := incr(t.Context(), p, "n"); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	g := newGate(client)
	calls := &caller{t: t, pipe: p}
	fail := func() {
		if _, err := incr(t.Context(), p, "n"); err == nil || connectionError(err) == nil {
			t.Errorf("%v, want an error of the connection", err)
		}
	}
	calls.Go(fail)
	<-g.arrived
	for i := range 3 {
		calls.later(i+1, fail)
	}
	server.Kill()
	g.release <- struct{}{}
	g.one()
	calls.Wait()
	seen.want(t, 1, 1, 3)
	for i, trip := range seen.all {
		if (trip.err != nil) != (i > 0) {
			t.Errorf("round trip %d: Observe is told %v", i, trip.err)
		}
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	go g.one()
	if n, err := incr(t.Context(), p, "n"); n != 1 || err != nil {
		t.Errorf("after the restart: %d, %v", n, err)
	}
}

func TestScriptIsMissing(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a script that is not there goes unnoticed")
		}
	}()
	MustScript(fstest.MapFS{}, "x")
}

// TestGivenUpBeforeItWasSent: what waits behind a slow round trip and is given up is never executed.
func TestGivenUpBeforeItWasSent(t *testing.T) {
	client := single.Client(t)
	g := newGate(client)
	p := New(client, Options{MaxInFlight: 1})
	pre := prefix()
	calls := &caller{t: t, pipe: p}
	calls.Go(func() { _, _ = incr(t.Context(), p, pre+"first") })
	<-g.arrived
	ctx, giveUp := context.WithCancel(t.Context())
	given := make(chan error)
	calls.later(1, func() {
		_, err := incr(ctx, p, pre+"given up")
		given <- err
	})
	calls.later(2, func() { _, _ = incr(t.Context(), p, pre+"last") })
	giveUp()
	if err := <-given; !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want canceled", err)
	}
	g.release <- struct{}{}
	g.one()
	calls.Wait()
	plain := single.Client(t)
	for key, want := range map[string]int64{"first": 1, "given up": 0, "last": 1} {
		if n := plain.Exists(t.Context(), pre+key).Val(); n != want {
			t.Errorf("%s was executed %d times, want %d", key, n, want)
		}
	}
}

// TestDoAll: each command has its own answer, and the error is that of the first that failed.
func TestDoAll(t *testing.T) {
	for name, client := range map[string]redis.UniversalClient{"single": single.Client(t), "cluster": cluster.Client(t)} {
		t.Run(name, func(t *testing.T) {
			trips := make(chan trip, 1)
			p := New(client, Options{Observe: func(_ time.Duration, n int, err error) { trips <- trip{n, err} }})
			pre := prefix()
			var cmds []redis.Cmder
			for i := range 50 {
				cmds = append(cmds, redis.NewIntCmd(t.Context(), "incrby", fmt.Sprint(pre, i), i))
			}
			cmds = append(cmds, redis.NewIntCmd(t.Context(), "incrby", pre+"0", "x"))
			err := p.DoAll(t.Context(), cmds)
			if err == nil || !errors.Is(cmds[50].Err(), err) {
				t.Errorf("got %v, and the last command %v", err, cmds[50].Err())
			}
			for i, cmd := range cmds[:50] {
				if got, err := cmd.(*redis.IntCmd).Result(); err != nil || got != int64(i) {
					t.Errorf("command %d: %d, %v", i, got, err)
				}
			}
			if seen := <-trips; seen != (trip{51, nil}) {
				t.Errorf("observed %v", seen)
			}
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			late := redis.NewIntCmd(gone, "incr", pre+"late")
			if err := p.DoAll(gone, []redis.Cmder{late}); !errors.Is(err, context.Canceled) || !errors.Is(late.Err(), context.Canceled) {
				t.Errorf("got %v and %v of a context that had ended", err, late.Err())
			}
		})
	}
}
