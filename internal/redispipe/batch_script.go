package redispipe

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/meter"
)

// BatchScript is a script that handles many targets in one run. Targets of concurrent calls share
// runs, since each run costs Redis a wakeup, a parse and a reply, and costs this process a command.
// Measured with 2,000 connections, in two short runs on a shared machine: an append to a channel in
// a batch of 100 takes 42 µs of CPU (41 to 44), 18 of them in Redis. With a command and a goroutine
// for each append it took 62 µs (56 to 68), 24 of them in Redis.
//
// The script gets the keys of all targets, target by target. Its arguments are first those that all
// targets share, then those of each target. It returns an array with one value for each target, in
// their order. The value is an error if only that target failed.
type BatchScript struct {
	*Script
	// Shared holds the arguments that do not depend on the target. An [encoding.BinaryMarshaler]
	// among them is marshaled when the command is written.
	Shared []any
	// Durable makes calls wait, with a WAIT on the same connection, until at least one replica has
	// what the script wrote. If no replica has it within Options.ReplicaTimeout, or there is none,
	// the error is ErrNotReplicated and the value is valid.
	//
	// A WAIT covers only writes on its own connection. A script that finds its work already done
	// must write something nevertheless, or the WAIT confirms nothing.
	Durable bool
}

// Target is one item that a BatchScript handles. All targets of a BatchScript must have the same
// number of arguments. The targets of one run have the same number of keys.
type Target struct {
	Script *BatchScript
	Keys   []string // not empty, and in one slot of a Cluster
	Args   []any
}

// Answer is the result of the script for one target.
type Answer struct {
	Value any
	Err   error
}

// EvalEach runs the scripts of all targets, in no particular order, and returns after all replies.
// If ctx ends first, each answer has ctx's error: targets that are not sent yet are dropped, the
// others may still run.
func (p *Pipe) EvalEach(ctx context.Context, targets ...Target) []Answer {
	answers := make([]Answer, len(targets))
	if err := ctx.Err(); err != nil || len(targets) == 0 {
		return fail(answers, err)
	}
	own := &struct {
		waiter
		calls []call
	}{calls: make([]call, len(targets))}
	own.expect(len(targets))
	var durable []*call
	batch := make([]*call, 0, len(targets))
	for i, t := range targets {
		c := &own.calls[i]
		c.waiter, c.script, c.target = &own.waiter, t.Script.Script, t
		if t.Script.Durable {
			durable = append(durable, c)
		} else {
			batch = append(batch, c)
		}
	}
	if len(durable) > 0 {
		p.enqueue(ctx, true, durable...)
	}
	if len(batch) > 0 { // last, since enqueue may make a round trip
		p.enqueue(ctx, false, batch...)
	}
	if err := own.wait(ctx); err != nil {
		return fail(answers, err)
	}
	m := meter.Of(ctx)
	for i := range own.calls {
		c := &own.calls[i]
		answers[i] = Answer{c.value, c.err}
		if m != nil {
			m.Add(valueBytes(c.value))
		}
		if c.err == nil {
			answers[i].Err = c.unconfirmed
		}
	}
	return answers
}

// fail sets the same error for each answer.
func fail(answers []Answer, err error) []Answer {
	for i := range answers {
		answers[i].Err = err
	}
	return answers
}

// command is one Redis command: a single call, or several targets of a BatchScript.
type command struct {
	cmd   redis.Cmder
	calls []*call
}

// makeCommands returns the commands for a batch of calls: one for each single call, and one for up
// to maxTargets targets of a BatchScript that have the same number of keys.
func makeCommands(ctx context.Context, batch []*call, maxTargets int) []command {
	commands := make([]command, 0, len(batch)) // must not grow: open points into it
	var open []*command                        // commands with room for more targets
next:
	for i, c := range batch {
		if c.cmd != nil || maxTargets == 1 {
			commands = append(commands, command{c.cmd, batch[i : i+1]})
			continue
		}
		for at, o := range open {
			if first := &o.calls[0].target; first.Script != c.target.Script || len(first.Keys) != len(c.target.Keys) {
				continue
			}
			if o.calls = append(o.calls, c); len(o.calls) == maxTargets {
				open = slices.Delete(open, at, at+1)
			}
			continue next
		}
		commands = append(commands, command{calls: append(make([]*call, 0, min(maxTargets, len(batch)-i)), c)})
		open = append(open, &commands[len(commands)-1])
	}
	for i := range commands {
		if c := &commands[i]; c.cmd == nil {
			c.build(ctx)
		}
	}
	return commands
}

// build sets cmd, for the targets of a BatchScript.
func (c *command) build(ctx context.Context) {
	first := &c.calls[0].target
	keys, n := len(first.Keys)*len(c.calls), len(c.calls)*len(first.Args)
	words := make([]any, 0, 3+keys+len(first.Script.Shared)+n)
	words = append(words, "evalsha", first.Script.digest, keys)
	for _, call := range c.calls {
		for i := range call.target.Keys {
			words = append(words, &call.target.Keys[i]) // a string would be copied to the heap
		}
	}
	words = append(words, first.Script.Shared...)
	for _, call := range c.calls {
		words = append(words, call.target.Args...)
	}
	cmd := redis.NewCmd(ctx, words...)
	cmd.SetFirstKeyPos(3)
	c.cmd = unretried{cmd}
}

// unknownScripts returns the commands whose scripts Redis does not know, changed to send the
// source.
func unknownScripts(commands []command) (unknown []command) {
	for _, c := range commands {
		if script := c.calls[0].script; script != nil && isNoScript(c.cmd.Err()) {
			c.cmd.SetErr(nil)
			script.sendSource(c.cmd)
			unknown = append(unknown, c)
		}
	}
	return unknown
}

// answer passes the reply to each call.
func (c *command) answer() {
	err := c.cmd.Err()
	if c.calls[0].cmd != nil || err != nil {
		for _, call := range c.calls {
			call.err = err
			call.answered()
		}
		return
	}
	for i, call := range c.calls {
		a := answerOf(call.script, c.cmd, i, len(c.calls))
		call.value, call.err = a.Value, a.Err
		call.answered()
	}
}

// answerOf returns the answer for target i of the n targets of a run.
func answerOf(script *Script, cmd redis.Cmder, i, n int) Answer {
	values, _ := cmd.(unretried).Val().([]any)
	if len(values) != n {
		return Answer{Err: fmt.Errorf("redispipe: %s answers with %d values for %d targets", script.Name, len(values), n)}
	}
	if err, failed := values[i].(error); failed {
		return Answer{Err: err}
	}
	return Answer{Value: values[i]}
}
