// Package cond has a condition variable whose wait ends with a context. Tests and benchmarks use it
// to wait for other goroutines without polling.
package cond

import (
	"context"
	"sync"
)

// A Cond is a mutex with a condition. It guards some state, usually the other fields of the struct
// that contains it.
type Cond struct {
	sync.Mutex
	changed chan struct{} // closed by the next Change; nil if no goroutine waits
}

// Change locks c and runs f, which may change the state. It then wakes all calls of Await.
func (c *Cond) Change(f func()) {
	c.Lock()
	defer c.Unlock()
	f()
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// Await waits until done returns true. It calls done with c locked, at first and after each Change.
// If ctx ends first, Await returns its error.
func (c *Cond) Await(ctx context.Context, done func() bool) error {
	for {
		c.Lock()
		if done() {
			c.Unlock()
			return nil
		}
		if c.changed == nil {
			c.changed = make(chan struct{})
		}
		changed := c.changed
		c.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
