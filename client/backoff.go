package client

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff draws each delay at random, uniformly from min to an upper bound. The bound begins at
// first, because all clients of a dead instance fail in the same millisecond: the first delay
// already spreads them. Then the bound grows with the time for which something has failed. It is
// this time until that is five times first, and then stays there until a third of the time is more.
// It is never above max. So several outages of seconds in a row do not lead to long delays.
type backoff struct {
	min, first, max time.Duration
	since           time.Time // when the failures began; zero means that there are none
}

// newBackoff returns a backoff of one of n URLs, or of anything else with n = 1. With more URLs,
// each is tried less often: when the network is back, all together bring back a client.
func newBackoff(o Options, n int) backoff {
	return backoff{min: o.BackoffMin, first: 4 * o.BackoffMin * time.Duration(2*n-1), max: o.BackoffMax}
}

// age returns how long the failures have lasted.
func (b *backoff) age() time.Duration {
	if b.since.IsZero() {
		return 0
	}
	return time.Since(b.since)
}

// next returns the delay after another failure.
func (b *backoff) next() time.Duration {
	if b.since.IsZero() {
		b.since = time.Now()
	}
	most := min(max(b.first, min(b.age(), 5*b.first), b.age()/3), b.max)
	return b.min + rand.N(max(0, most-b.min)+1)
}

// forget subtracts d from the time for which it has failed. It reports whether no time is
// left.
func (b *backoff) forget(d time.Duration) bool {
	if b.age() <= d {
		b.reset()
		return true
	}
	b.since = b.since.Add(d)
	return false
}

func (b *backoff) reset() { b.since = time.Time{} }

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
