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
