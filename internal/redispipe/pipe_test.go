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

// TestCallsShareRoundTrips checks that calls queued during one round trip share the next.
func TestCallsShareRoundTrips(t *testing.T) {
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
	<-g.blocked
	for i := range 99 {
		calls.start(i+1, call)
	}
	g.release <- struct{}{}
	for range 3 {
		g.pass()
	}
	calls.Wait()
	seen.want(t, 1, 40, 40, 19)
	if n, err := single.Client(t).Get(t.Context(), key).Int(); n != 100 || err != nil {
		t.Errorf("%d commands ran, %v; want 100", n, err)
	}
}

// TestSecondRoundTrip checks that a second round trip starts while the first is in flight.
func TestSecondRoundTrip(t *testing.T) {
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
		<-g.blocked
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

// TestUnknownScripts checks that a script that Redis does not know is sent again with its source,
// and that the other commands of the pipeline do not run again.
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
	<-g.blocked
	for i := range 3 {
		calls.start(2*i+1, eval)
		calls.start(2*i+2, func() { _, _ = incr(t.Context(), p, pre+"plain") })
	}
	g.release <- struct{}{}
	g.pass()
	g.pass()
	calls.Wait()
	seen.want(t, 1, 6, 3)
	for _, key := range []string{"script", "plain"} {
		if n, err := single.Client(t).Get(t.Context(), pre+key).Int(); n != 3 || err != nil {
			t.Errorf("%s ran %d times, %v; want 3", key, n, err)
		}
	}
	go g.pass()
	eval()
	seen.want(t, 1, 6, 3, 1) // the script is known
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
	<-g.blocked
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
		calls.start(i+1, func() {
			err := test.call()
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("call %d: %v, want %q", i, err, test.want)
			}
		})
	}
	g.release <- struct{}{}
	g.pass() // all
	g.pass() // the script, with its source
	calls.Wait()
	for _, trip := range seen.all {
		if trip.err != nil {
			t.Errorf("Redis replied, but Observe got %v", trip.err)
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
	calls.Go(wait("in flight"))
	<-g.blocked
	calls.start(1, wait("waiting"))
	cancel()
	calls.Wait() // although the round trip has not ended
	if _, err := incr(ctx, p, pre+"late"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the context's error", err)
	}
	calls.start(2, func() { _, _ = incr(t.Context(), p, pre+"other") })
	g.release <- struct{}{}
	g.pass()
	calls.Wait()
	seen.want(t, 1, 1) // the calls with the ended context were not sent
}

// hang is a hook that makes Redis never reply.
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
		t.Errorf("Observe got %v", seen.all)
	}
}

func TestRedisRestarts(t *testing.T) {
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
			t.Errorf("%v, want a connection error", err)
		}
	}
	calls.Go(fail)
	<-g.blocked
	for i := range 3 {
		calls.start(i+1, fail)
	}
	server.Kill()
	g.release <- struct{}{}
	g.pass()
	calls.Wait()
	seen.want(t, 1, 1, 3)
	for i, trip := range seen.all {
		if (trip.err != nil) != (i > 0) {
			t.Errorf("round trip %d: Observe got %v", i, trip.err)
		}
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	go g.pass()
	if n, err := incr(t.Context(), p, "n"); n != 1 || err != nil {
		t.Errorf("after the restart: %d, %v", n, err)
	}
}

// TestScriptOfPieces checks that a script can use the local variables of its pieces.
func TestScriptOfPieces(t *testing.T) {
	files := fstest.MapFS{
		"lua/x.lua":   {Data: []byte("#!lua\nreturn twice(one)")},
		"lua/one.lua": {Data: []byte("local one = 1\n")},
		"lua/two.lua": {Data: []byte("local function twice(n) return 2 * n end\n")},
	}
	got, err := New(single.Client(t), Options{}).Eval(t.Context(), MustScript(files, "x", "one", "two"), nil)
	if err != nil || got != int64(2) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestScriptIsMissing(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("MustScript does not panic for a missing file")
		}
	}()
	MustScript(fstest.MapFS{}, "x")
}

// TestAbandonedCallIsNotSent checks that a queued call does not run after its caller gave up.
func TestAbandonedCallIsNotSent(t *testing.T) {
	client := single.Client(t)
	g := newGate(client)
	p := New(client, Options{MaxInFlight: 1})
	pre := prefix()
	calls := &caller{t: t, pipe: p}
	calls.Go(func() { _, _ = incr(t.Context(), p, pre+"first") })
	<-g.blocked
	ctx, cancel := context.WithCancel(t.Context())
	abandoned := make(chan error)
	calls.start(1, func() {
		_, err := incr(ctx, p, pre+"abandoned")
		abandoned <- err
	})
	calls.start(2, func() { _, _ = incr(t.Context(), p, pre+"last") })
	cancel()
	if err := <-abandoned; !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want canceled", err)
	}
	g.release <- struct{}{}
	g.pass()
	calls.Wait()
	plain := single.Client(t)
	for key, want := range map[string]int64{"first": 1, "abandoned": 0, "last": 1} {
		if n := plain.Exists(t.Context(), pre+key).Val(); n != want {
			t.Errorf("%s ran %d times, want %d", key, n, want)
		}
	}
}

// TestDoAll checks that each command has its own result, and that DoAll returns the first error.
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
				t.Errorf("Observe got %v", seen)
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			late := redis.NewIntCmd(ended, "incr", pre+"late")
			if err := p.DoAll(ended, []redis.Cmder{late}); !errors.Is(err, context.Canceled) || !errors.Is(late.Err(), context.Canceled) {
				t.Errorf("got %v and %v with an ended context", err, late.Err())
			}
		})
	}
}
