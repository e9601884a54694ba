package client

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff draws delays uniformly from min to a bound ("full jitter", with a floor). The bound is
// first at the beginning: all clients of a dead instance fail in the same millisecond, and the
// first delay already spreads them. Then it is the time for which something has failed, up to five
// times first, and later a third of that time, up to max. So outages of seconds in a row do not add
// up to long delays.
type backoff struct {
	min, first, max time.Duration
	since           time.Time // when the failures began; zero means that there are none
}

// newBackoff returns a backoff of one of n URLs, or of anything else with n = 1. With more URLs,
// each is tried less often: when the network is back, all together bring back a client.
func newBackoff(o Options, n int) backoff {
	return backoff{min: o.BackoffMin, first: 4 * o.BackoffMin * time.Duration(2*n-1), max: o.BackoffMax}
}

// age returns for how long it has failed.
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

// forget subtracts d from the time for which it has failed. It reports whether nothing is left.
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
