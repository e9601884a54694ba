package redispipe

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// EvalMany is EvalEach for n targets of one script, which must not be Durable. keys and args have
// the keys and arguments of all targets, target by target, and must not change after the call.
// EvalMany calls answer for each target, in order. Its runs are not shared with other calls, so
// that a target costs no object: a server compares tens of thousands of queues in a second, and
// their garbage would slow what else it does.
func (p *Pipe) EvalMany(ctx context.Context, script *BatchScript, n int, keys []string, args []any, answer func(i int, a Answer)) {
	if n == 0 {
		return
	}
	ofTargets := func(from, to int) Target {
		k, a := len(keys)/n, len(args)/n
		return Target{script, keys[from*k : to*k], args[from*a : to*a]}
	}
	if p.opts.MaxTargets == 1 {
		targets := make([]Target, n)
		for i := range targets {
			targets[i] = ofTargets(i, i+1)
		}
		for i, a := range p.EvalEach(ctx, targets...) {
			answer(i, a)
		}
		return
	}
	size := p.opts.MaxTargets
	own := &struct {
		waiter
		calls []call
	}{calls: make([]call, 0, (n+size-1)/size)}
	batch := make([]*call, 0, cap(own.calls))
	for from := 0; from < n; from += size {
		cmd := runOf(ctx, ofTargets(from, min(n, from+size)))
		own.calls = append(own.calls, call{waiter: &own.waiter, cmd: cmd, script: script.Script})
		batch = append(batch, &own.calls[len(batch)])
	}
	own.expect(len(batch))
	err := ctx.Err()
	if err == nil {
		p.enqueue(ctx, false, batch...)
		err = own.wait(ctx)
	}
	for i := range n {
		if err != nil { // the calls may still be in flight
			answer(i, Answer{Err: err})
			continue
		}
		c := &own.calls[i/size]
		if i%size == 0 && c.err == nil {
			countReplies(ctx, c.cmd)
		}
		a := Answer{Err: c.err}
		if a.Err == nil {
			a = answerOf(script.Script, c.cmd, i%size, min(size, n-i/size*size))
		}
		answer(i, a)
	}
}

// runOf returns the command that runs a script for the targets whose keys and arguments t has.
func runOf(ctx context.Context, t Target) unretried {
	words := make([]any, 0, 3+len(t.Keys)+len(t.Script.Shared)+len(t.Args))
	words = append(words, "evalsha", t.Script.digest, len(t.Keys))
	for i := range t.Keys {
		words = append(words, &t.Keys[i]) // a string would be copied to the heap
	}
	words = append(append(words, t.Script.Shared...), t.Args...)
	cmd := redis.NewCmd(ctx, words...)
	cmd.SetFirstKeyPos(3)
	return unretried{cmd}
}
