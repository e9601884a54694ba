package client

import (
	"context"
	"math/rand/v2"
	"time"
)

// steady is how long a connection must have been up for the next delay to start small
// again. An answer to connect is not enough: a broker that falls over under its returning
// clients answers each of them, and a reset there would keep the herd at full speed.
const steady = 10 * time.Second

// backoff draws delays uniformly from [min, ceiling] ("full jitter", with a floor). The
// ceiling starts at 4×min and doubles up to max. It does not start at min, because the
// clients of an instance that died lose it in the same millisecond and the first delay
// is the one that spreads them.
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

// pause waits for d; it reports false when ctx ended first.
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
