package work

import (
	"context"
	"slices"
	"time"
)

// Every calls do each time that d has passed, until ctx ends. Then it returns nil.
func Every(ctx context.Context, d time.Duration, do func()) error {
	tick := time.NewTicker(d)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			do()
		}
	}
}

// InChunks calls do for chunks of up to size items, one after the other, and spreads the calls over
// pace. If they take longer than that, or when ctx has ended, it does not pause.
func InChunks[T any](ctx context.Context, items []T, size int, pace time.Duration, do func(chunk []T)) {
	calls := (len(items) + size - 1) / size
	began, made := time.Now(), 0
	for chunk := range slices.Chunk(items, size) {
		do(chunk)
		if made++; made < calls {
			pause(ctx, pace*time.Duration(made)/time.Duration(calls)-time.Since(began))
		}
	}
}

// pause returns after d, or when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
