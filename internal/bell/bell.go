// Package bell is how tests and measuring programs wait for what others write: nobody
// sleeps and looks again.
package bell

import (
	"context"
	"sync"
)

// Bell guards some state and rings when it changes. It is meant to be embedded beside
// that state.
type Bell struct {
	sync.Mutex
	changed chan struct{} // closed by the next change; nil when nobody waits
}

// Change runs f, which may write the state.
func (b *Bell) Change(f func()) {
	b.Lock()
	defer b.Unlock()
	f()
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// Await returns when done, which may read the state, says so.
func (b *Bell) Await(ctx context.Context, done func() bool) error {
	for {
		b.Lock()
		if done() {
			b.Unlock()
			return nil
		}
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		changed := b.changed
		b.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
