package redispipe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestEvalMany checks that each target has its own answer, in a single Redis in runs of MaxTargets,
// and that a Redis that does not know the script gets it.
func TestEvalMany(t *testing.T) {
	const n = 7
	for name, c := range map[string]struct {
		pipe     func(Options) *Pipe
		commands []int // of each round trip; nil if there are several per target
	}{
		"single":  {func(o Options) *Pipe { return New(single.Client(t), o) }, []int{3, 3}},
		"cluster": {func(o Options) *Pipe { return New(cluster.Client(t), o) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if err := single.Client(t).ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			seen := &trips{}
			p, sum := c.pipe(Options{MaxTargets: 3, Observe: seen.observe}), add(t)
			keys, args, pre := make([]string, n), make([]any, n), prefix()
			for i := range n {
				keys[i], args[i] = fmt.Sprintf("%s%d", pre, i), i
			}
			if err := p.client.LPush(t.Context(), keys[4], "x").Err(); err != nil {
				t.Fatal(err)
			}
			asked := 0
			p.EvalMany(t.Context(), sum, n, keys, args, func(i int, a Answer) {
				switch {
				case i != asked:
					t.Errorf("answer %d after %d others", i, asked)
				case i == 4:
					if a.Err == nil || !strings.HasPrefix(a.Err.Error(), "WRONGTYPE") {
						t.Errorf("target %d: %v, want Redis to refuse it", i, a.Err)
					}
				case a.Value != int64(1000+i) || a.Err != nil:
					t.Errorf("target %d: %v, %v; want %d", i, a.Value, a.Err, 1000+i)
				}
				asked++
			})
			if asked != n {
				t.Errorf("%d answers for %d targets", asked, n)
			}
			if c.commands != nil {
				seen.want(t, c.commands...)
			}
		})
	}
}

// TestEvalManyFails checks that each target gets the error of its run, or of the context.
func TestEvalManyFails(t *testing.T) {
	p, ended := New(single.Client(t), Options{MaxTargets: 2}), canceled(t)
	for _, c := range []struct {
		ctx    context.Context
		source string
		want   string
	}{
		{t.Context(), `return redis.error_reply('OOM no')`, "OOM no"},
		{t.Context(), `return {1}`, "1 values for 2 targets"},
		{t.Context(), `return 'x'`, "0 values for 2 targets"},
		{ended, `return {1, 1}`, context.Canceled.Error()},
	} {
		asked := 0
		p.EvalMany(c.ctx, &BatchScript{Script: script(t, c.source)}, 4, []string{"a", "b", "c", "d"}, nil, func(_ int, a Answer) {
			if asked++; a.Err == nil || !strings.Contains(a.Err.Error(), c.want) || (c.ctx == ended) != errors.Is(a.Err, context.Canceled) {
				t.Errorf("%s: %v, want %s", c.source, a.Err, c.want)
			}
		})
		if asked != 4 {
			t.Errorf("%s: %d answers for 4 targets", c.source, asked)
		}
	}
	p.EvalMany(t.Context(), add(t), 0, nil, nil, func(int, Answer) { t.Error("an answer for no target") })
}

// canceled returns a context that has ended.
func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
