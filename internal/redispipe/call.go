package redispipe

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// call is what waits to be sent: a command by itself, or a target of a group.
type call struct {
	*ticket
	cmd    redis.Cmder // nil for a target
	script *Script     // nil for a plain command
	target Target      // without a group for a command by itself
	value  any         // of a target
	err    error

	// Of a durable call:
	asking      bool // the node has the slot only by half yet
	redirects   int
	unconfirmed error // what is to be said beside value
}

// ticket is what one caller waits with for all of his calls.
type ticket struct {
	left atomic.Int64
	done chan struct{} // closed when none is left
	gone atomic.Bool   // the caller no longer waits: what was not sent by then never is
}

func (t *ticket) expect(calls int) {
	t.done = make(chan struct{})
	t.left.Store(int64(calls))
}

// answered says that one call has its outcome.
func (t *ticket) answered() {
	if t.left.Add(-1) == 0 {
		close(t.done)
	}
}

// wait returns when all calls are answered. With an error they may still be under way.
func (t *ticket) wait(ctx context.Context) error {
	if ctx.Done() == nil { // a push: a select would take two locks more, 7 % of a batch
		<-t.done
		return nil
	}
	select {
	case <-t.done:
		return nil
	case <-ctx.Done():
		t.gone.Store(true)
		return ctx.Err()
	}
}

// wanted leaves out what was given up: what somebody gave up on in an outage must not come true behind
// what he did instead.
func wanted(batch []*call) []*call {
	return slices.DeleteFunc(batch, func(c *call) bool { return c.gone.Load() })
}
