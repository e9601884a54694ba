package redispipe

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// call is a queued command, or a queued target of a BatchScript.
type call struct {
	*waiter
	cmd    redis.Cmder // nil for a target
	script *Script     // nil for a plain command
	target Target      // zero for a command
	value  any         // result of a target
	err    error

	// Used by durable calls:
	asking      bool // send ASKING first: the slot is being migrated to the node
	redirects   int
	unconfirmed error // returned with value if no replica confirmed the write
}

// key returns the first key of a call, or "" if it has none. Plain commands have it after their
// name. It only chooses the lane: the client of a Cluster finds the node of a plain call by itself.
func (c *call) key() string {
	if c.cmd == nil {
		return c.target.Keys[0]
	}
	at := 1
	if c.script != nil {
		at = 3 // after the name, the digest and the number of keys
	}
	args := c.cmd.Args()
	if at >= len(args) {
		return ""
	}
	key, _ := args[at].(string)
	return key
}

// waiter lets one caller wait for all its calls.
type waiter struct {
	pending   atomic.Int64
	done      chan struct{} // closed when no call is pending
	abandoned atomic.Bool   // the caller no longer waits: do not send the calls that are still queued
}

func (w *waiter) expect(calls int) {
	w.done = make(chan struct{})
	w.pending.Store(int64(calls))
}

// answered marks one call as answered.
func (w *waiter) answered() {
	if w.pending.Add(-1) == 0 {
		close(w.done)
	}
}

// wait returns after all calls are answered. After an error, calls may still be in flight.
func (w *waiter) wait(ctx context.Context) error {
	if ctx.Done() == nil { // a push has such a ctx; a select takes two more locks, 7 % of the cost of a batch
		<-w.done
		return nil
	}
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		w.abandoned.Store(true)
		return ctx.Err()
	}
}

// withoutAbandoned removes the calls whose callers gave up. An abandoned call must not run after
// the caller's fallback.
func withoutAbandoned(batch []*call) []*call {
	return slices.DeleteFunc(batch, func(c *call) bool { return c.abandoned.Load() })
}
