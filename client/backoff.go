package client

import (
	"context"
	"math/rand/v2"
	"time"
)

// minUptime is how long a connection must last before the backoff is reset. An answer to connect is
// not enough: a broker that fails under the load of returning clients answers each of them first. A
// reset at the answer would let all of them return at the fastest rate.
const minUptime = 10 * time.Second

// backoff draws delays uniformly from [min, ceiling] ("full jitter", with a floor). The
// ceiling starts at 4×min and doubles up to max. It does not start at min: all clients of a dead
// instance lose their connections in the same millisecond, and the first delay spreads them.
type backoff struct {
	min, max time.Duration
	failures int
}

func (b *backoff) next() time.Duration {
	ceiling := b.max
	if shift := b.failures + 2; shift < 62 && b.min <= b.max>>shift {
		ceiling = b.min << shift
	}
	b.failures++
	return b.min + rand.N(ceiling-b.min+1)
}

func (b *backoff) reset() { b.failures = 0 }

// pause waits for d. It returns false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
