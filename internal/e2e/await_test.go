package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

// bell guards some state and rings when it changes, so that nobody needs to look twice.
type bell struct {
	mu      sync.Mutex
	changed chan struct{} // closed by the next change; nil when nobody waits
}

// change runs f, which may write the state.
func (b *bell) change(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// await returns when done, which may read the state, says so.
func (b *bell) await(ctx context.Context, done func() bool) error {
	for {
		b.mu.Lock()
		if done() {
			b.mu.Unlock()
			return nil
		}
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		changed := b.changed
		b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// eventually asks again and again until check has no objection: Redis rings no bell.
func eventually(ctx context.Context, t *testing.T, what string, check func() error) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(fmt.Errorf("%s: %w", what, err))
		}
	}
}
