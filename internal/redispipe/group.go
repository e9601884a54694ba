package redispipe

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"
)

// Group is a script that works through many targets in one run. Those of concurrent calls are gathered: a
// run costs Redis its parsing, its answer and a part of its waking up, and here a command. An append to a channel
// in a batch of 100 took 62 us of CPU (56 to 68) where each was a command and a goroutine, 24 of them in Redis, and takes
// 42 (41 to 44) and 18: two short rounds each with 2,000 connections, one after the other on a shared machine.
//
// The script gets the keys of all targets, target by target, and as arguments first those that all share, then
// those of each target. It returns an array with one value for each, in their order, which is an error where something is wrong
// with that target alone.
type Group struct {
	Script *Script
	// Shared are the arguments that do not depend on the target. An [encoding.BinaryMarshaler] among them is
	// asked when the command is written.
	Shared []any
	// Durable groups are answered when at least one replica has what the script wrote, by a WAIT on the same
	// connection. When none has after Options.ReplicaTimeout, with a Redis without replicas always, the
	// value is valid all the same and the error is ErrNotReplicated.
	//
	// A WAIT covers what was written on its connection. A script that found its work done
	// already must write something nevertheless, or the answer may be about nothing.
	Durable bool
}

// Target is one of what a Group's script works through. In one run all have equally many keys, and all of a
// group must have equally many arguments.
type Target struct {
	Group *Group
	Keys  []string // not empty, and in one slot of a Cluster
	Args  []any
}

// Answer is what the script returned for one target.
type Answer struct {
	Value any
	Err   error
}

// EvalEach runs the scripts of all targets, in no particular order, and returns when each has its answer. When ctx ends
// first that is ctx's error for all; targets that were not sent by then never are, others may still be executed.
func (p *Pipe) EvalEach(ctx context.Context, targets ...Target) []Answer {
	answers := make([]Answer, len(targets))
	if err := ctx.Err(); err != nil || len(targets) == 0 {
		return fail(answers, err)
	}
	own := &struct {
		ticket
		calls []call
	}{calls: make([]call, len(targets))}
	own.expect(len(targets))
	var durable []*call
	batch := make([]*call, 0, len(targets))
	for i, t := range targets {
		c := &own.calls[i]
		c.ticket, c.script, c.target = &own.ticket, t.Group.Script, t
		if t.Group.Durable {
			durable = append(durable, c)
		} else {
			batch = append(batch, c)
		}
	}
	if len(durable) > 0 {
		p.sendDurable(ctx, durable)
	}
	if len(batch) > 0 { // last: it may take a round trip
		p.enqueue(ctx, batch...)
	}
	if err := own.wait(ctx); err != nil {
		return fail(answers, err)
	}
	for i := range own.calls {
		c := &own.calls[i]
		answers[i] = Answer{c.value, c.err}
		if c.err == nil {
			answers[i].Err = c.unconfirmed
		}
	}
	return answers
}

// fail gives each answer the same error.
func fail(answers []Answer, err error) []Answer {
	for i := range answers {
		answers[i].Err = err
	}
	return answers
}

// command is what is sent for one call, or for several targets of a group.
type command struct {
	cmd   redis.Cmder
	calls []*call
}

// gather makes a command of each call by itself, and of up to most targets of a group that have as many keys.
func gather(ctx context.Context, batch []*call, most int) []command {
	commands := make([]command, 0, len(batch)) // grows no further: open points into it
	var open []*command                        // that take more; a few, since few groups come together
next:
	for i, c := range batch {
		if c.cmd != nil || most == 1 {
			commands = append(commands, command{c.cmd, batch[i : i+1]})
			continue
		}
		for at, o := range open {
			if first := &o.calls[0].target; first.Group != c.target.Group || len(first.Keys) != len(c.target.Keys) {
				continue
			}
			if o.calls = append(o.calls, c); len(o.calls) == most {
				open = slices.Delete(open, at, at+1)
			}
			continue next
		}
		commands = append(commands, command{calls: append(make([]*call, 0, min(most, len(batch)-i)), c)})
		open = append(open, &commands[len(commands)-1])
	}
	for i := range commands {
		if c := &commands[i]; c.cmd == nil {
			c.write(ctx)
		}
	}
	return commands
}

// write makes the command of a group's targets.
func (c *command) write(ctx context.Context) {
	first := &c.calls[0].target
	keys, n := len(first.Keys)*len(c.calls), len(c.calls)*len(first.Args)
	words := make([]any, 0, 3+keys+len(first.Group.Shared)+n)
	words = append(words, "evalsha", first.Group.Script.digest, keys)
	for _, call := range c.calls {
		for i := range call.target.Keys {
			words = append(words, &call.target.Keys[i]) // a string itself would be copied to the heap
		}
	}
	words = append(words, first.Group.Shared...)
	for _, call := range c.calls {
		words = append(words, call.target.Args...)
	}
	cmd := redis.NewCmd(ctx, words...)
	cmd.SetFirstKeyPos(3)
	c.cmd = once{cmd}
}

// unknownScripts are the commands whose scripts Redis does not know, now with the text.
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

// answer gives each call its outcome.
func (c *command) answer() {
	err := c.cmd.Err()
	if c.calls[0].cmd != nil || err != nil {
		for _, call := range c.calls {
			call.err = err
			call.answered()
		}
		return
	}
	values, _ := c.cmd.(once).Val().([]any)
	for i, call := range c.calls {
		if len(values) != len(c.calls) {
			call.err = fmt.Errorf("redispipe: %s answers with %d values for %d targets", call.script.Name, len(values), len(c.calls))
		} else if err, failed := values[i].(error); failed {
			call.err = err
		} else {
			call.value = values[i]
		}
		call.answered()
	}
}
