package redispipe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// add returns a script whose targets add a number to their first key. A target may fail without the
// others.
func add(t *testing.T) *BatchScript {
	return &BatchScript{Shared: []any{"1000"}, Script: script(t, `
local sums = {}
for i = 1, #ARGV - 1 do
	sums[i] = redis.pcall('INCRBY', KEYS[1 + (i - 1) * #KEYS / (#ARGV - 1)], ARGV[1] + ARGV[1 + i])
end
return sums`)}
}

func to(s *BatchScript, n int, keys ...string) Target {
	return Target{Script: s, Keys: keys, Args: []any{n}}
}

// TestTargetsShareRuns checks that queued targets of a script with the same number of keys share
// runs of up to MaxTargets targets, and that each target has its own result or error.
func TestTargetsShareRuns(t *testing.T) {
	client := single.Client(t)
	g := newGate(client)
	seen := &trips{}
	p := New(client, Options{MaxInFlight: 1, MaxTargets: 3, Observe: seen.observe})
	sum, other, pre := add(t), add(t), prefix()
	plain := single.Client(t)
	for _, err := range []error{plain.ScriptLoad(t.Context(), sum.Script.Source).Err(), plain.LPush(t.Context(), pre+"list", "x").Err()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	calls := &caller{t: t, pipe: p}
	calls.Go(func() { _, _ = incr(t.Context(), p, pre+"first") })
	<-g.blocked
	targets := []Target{
		to(sum, 1, pre+"a"), to(sum, 2, pre+"b"), to(sum, 3, pre+"a"), to(sum, 4, pre+"list"), to(sum, 5, pre+"a"),
		to(sum, 6, pre+"c", pre+"unused"), to(other, 7, pre+"c"),
	}
	want := []int64{1001, 1002, 2004, 0, 3009, 1006, 2013}
	calls.start(len(targets)+1, func() {
		answers := p.EvalEach(t.Context(), append(targets, to(sum, 8, pre+"list"))...)
		for i, n := range append(want, 0) {
			if n == 0 {
				if err := answers[i].Err; err == nil || !strings.HasPrefix(err.Error(), "WRONGTYPE") || connectionError(err) != nil {
					t.Errorf("target %d: %v, want Redis to refuse it", i, err)
				}
			} else if answers[i].Value != n || answers[i].Err != nil {
				t.Errorf("target %d: %v, %v; want %d", i, answers[i].Value, answers[i].Err, n)
			}
		}
	})
	calls.start(len(targets)+2, func() { _, _ = incr(t.Context(), p, pre+"first") })
	g.release <- struct{}{}
	g.pass()
	calls.Wait()
	seen.want(t, 1, 5) // two runs of three targets, one with two keys, one of another script, and the plain command
}

// TestCallersShareRuns checks that calls queued during one round trip share runs in the next.
func TestCallersShareRuns(t *testing.T) {
	client := single.Client(t)
	g := newGate(client)
	seen := &trips{}
	p := New(client, Options{MaxInFlight: 1, Observe: seen.observe})
	sum, key := add(t), prefix()
	if err := single.Client(t).ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	calls := &caller{t: t, pipe: p}
	calls.Go(func() { _, _ = incr(t.Context(), p, key) })
	<-g.blocked
	ctx, cancel := context.WithCancel(t.Context())
	for i := range 100 {
		calls.start(i+1, func() {
			ctx := ctx
			if i%10 > 0 {
				ctx = t.Context()
			}
			if err := p.EvalEach(ctx, to(sum, 0, key))[0].Err; (err != nil) != (i%10 == 0) {
				t.Error(i, err)
			}
		})
	}
	cancel()
	until(p, func() bool { // their callers gave up
		for i, c := range waitingLocked(p) {
			if i%10 == 0 && !c.abandoned.Load() {
				return false
			}
		}
		return true
	})
	g.release <- struct{}{}
	g.pass()
	g.pass()
	calls.Wait()
	seen.want(t, 1, 2, 2) // 64 and 26 targets, and a resend with the source
	if n, err := single.Client(t).Get(t.Context(), key).Int(); n != 90_001 || err != nil {
		t.Errorf("%d, %v; want 90 targets, each once, and no abandoned one", n, err)
	}
}

// TestBatchScriptFails checks that each target gets the error of a failed run.
func TestBatchScriptFails(t *testing.T) {
	for name, c := range map[string]struct{ source, want string }{
		"refused":      {`return redis.error_reply('OOM no')`, "OOM no"},
		"short":        {`return {1}`, "1 values for 2 targets"},
		"not an array": {`return 'x'`, "0 values for 2 targets"},
	} {
		t.Run(name, func(t *testing.T) {
			p, s := New(single.Client(t), Options{}), &BatchScript{Script: script(t, c.source)}
			for _, a := range p.EvalEach(t.Context(), to(s, 1, "a"), to(s, 1, "b")) {
				if a.Err == nil || !strings.Contains(a.Err.Error(), c.want) {
					t.Errorf("%v, want %s", a.Err, c.want)
				}
			}
		})
	}
	p := New(single.Client(t), Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	answers := p.EvalEach(ctx, to(add(t), 1, "a"), to(add(t), 1, "b"))
	for _, a := range answers {
		if !errors.Is(a.Err, context.Canceled) {
			t.Errorf("%v, want the context's error", a.Err)
		}
	}
	if len(answers) != 2 {
		t.Error(len(answers), "answers for two targets")
	}
}

// TestBatchScriptInCluster checks scripts in a Cluster, where each run has one target.
func TestBatchScriptInCluster(t *testing.T) {
	for _, wait := range []bool{false, true} {
		p := New(cluster.Client(t), Options{ReplicaTimeout: 1})
		sum, pre := add(t), prefix()
		sum.Durable = wait
		targets := make([]Target, 100)
		for i := range targets {
			targets[i] = to(sum, i, fmt.Sprint(pre, i))
		}
		for i, a := range p.EvalEach(t.Context(), targets...) {
			if a.Value != int64(1000+i) || errors.Is(a.Err, ErrNotReplicated) != wait || a.Err != nil && !wait {
				t.Errorf("target %d: %v, %v; want %d", i, a.Value, a.Err, 1000+i)
			}
		}
	}
}
