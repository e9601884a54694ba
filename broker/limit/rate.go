package limit

import (
	"math"
	"sync/atomic"
	"time"
)

// defaultBurstSeconds is the burst of PerSecond, in seconds of its rate.
const defaultBurstSeconds = 4

// maxInterval is the longest interval between two tokens, in ns. Above it times overflow.
const maxInterval = float64(10 * 24 * time.Hour)

// maxDebt bounds how long a bucket of New refuses after one large take.
const maxDebt = time.Minute

// Rate is a number of tokens per second and a burst. The zero value means no limit.
type Rate struct {
	interval float64 // ns until a token is refilled
	window   int64   // ns until all tokens of the burst are refilled
	debt     int64   // ns for which a bucket refuses at most after one large take
}

// New returns a Rate. Both numbers must be above zero.
func New(perSecond float64, burst int) Rate {
	each := min(float64(time.Second)/perSecond, maxInterval)
	return Rate{each, int64(math.Ceil(each * float64(max(1, burst)))), int64(maxDebt)}
}

// PerHour returns a Rate of n tokens per hour with a burst of n. A take of up to n tokens is paid
// back in full, also if that takes longer than a minute. If n is 0 there is no limit.
func PerHour(n int) Rate {
	if n <= 0 {
		return Rate{}
	}
	r := New(float64(n)/time.Hour.Seconds(), n)
	r.debt = r.window
	return r
}

// PerSecond returns a Rate of n tokens per second with a burst of 4 n. If n is 0 there is no limit.
func PerSecond(n int) Rate {
	if n <= 0 {
		return Rate{}
	}
	return New(float64(n), defaultBurstSeconds*n)
}

// part returns one of n parts of the burst, at least a token. Without a limit it is endless.
func (r Rate) part(n int) int {
	if r.None() {
		return math.MaxInt
	}
	return max(1, int(float64(r.window)/r.interval)/n)
}

// None reports whether there is no limit.
func (r Rate) None() bool { return r.interval == 0 }

// take takes n tokens from a bucket, by the generic cell rate algorithm (ITU-T I.371, annex A).
// full is the time at which the bucket is full again, in ns like now. take returns the next value
// of full, or how long to wait. If one whole token is there, take takes n and leaves a debt.
// Otherwise a large batch would never succeed on a bucket that others use too.
func (r Rate) take(full, now int64, n int) (next int64, wait time.Duration) {
	if r.None() {
		return full, 0
	}
	full = max(full, now)
	if wait := full + int64(r.interval) - now - r.window; wait > 0 {
		return full, time.Duration(wait)
	}
	return min(full+r.cost(n), now+r.window+r.debt), 0
}

// cost returns how long it takes to refill n tokens, in ns. It is at most what a take leaves.
func (r Rate) cost(n int) int64 {
	return int64(min(r.interval*float64(n), float64(r.window+r.debt)))
}

// Bucket is a token bucket in 8 bytes: the time at which it is full again, in ns since a fixed
// moment. A rate.Limiter of golang.org/x/time takes 80 bytes, since each holds its rate, a mutex
// and two time.Time. A busy connection has two buckets and an address has one. The zero value is
// full. A Bucket is not safe for concurrent use.
type Bucket int64

// Take takes n tokens at the rate r, or returns how long it is until a token is there.
func (b *Bucket) Take(r Rate, n int, now time.Duration) (wait time.Duration) {
	next, wait := r.take(int64(*b), int64(now), n)
	*b = Bucket(next)
	return wait
}

// owe takes n tokens, also if they are not there. The bucket then owes them, as after a Take.
func (b *Bucket) owe(r Rate, n int, now time.Duration) {
	if !r.None() {
		*b = Bucket(min(max(int64(*b), int64(now))+r.cost(n), int64(now)+r.window+r.debt))
	}
}

// give returns n tokens of an earlier Take that were not used.
func (b *Bucket) give(r Rate, n int) { *b -= Bucket(r.cost(n)) }

// raise sets what a bucket owes to that of all servers and what n more tokens cost, if that is
// more. full is the time at which the bucket of all servers is full again.
func (b *Bucket) raise(r Rate, full time.Duration, n int) {
	if !r.None() {
		*b = max(*b, Bucket(int64(full)+r.cost(n)))
	}
}

// overdrawn returns how long a bucket owes more than its burst, 0 if it does not. Takes of one
// token never overdraw it, but raise does.
func (b Bucket) overdrawn(r Rate, now time.Duration) time.Duration {
	if r.None() {
		return 0
	}
	return max(0, time.Duration(int64(b)-int64(now)-r.window))
}

// Full reports whether the bucket is full, like a new one.
func (b Bucket) Full(now time.Duration) bool { return int64(b) <= int64(now) }

// SharedBucket is a Bucket for concurrent use, with its rate. A nil SharedBucket has no limit.
type SharedBucket struct {
	rate  Rate
	epoch time.Time
	full  atomic.Int64
}

// NewSharedBucket returns a full bucket.
func NewSharedBucket(r Rate) *SharedBucket { return &SharedBucket{rate: r, epoch: time.Now()} }

// Take takes n tokens, or returns how long it is until a token is there.
func (s *SharedBucket) Take(n int) (wait time.Duration) {
	if s == nil || s.rate.None() {
		return 0
	}
	now := int64(time.Since(s.epoch))
	for {
		full := s.full.Load()
		next, wait := s.rate.take(full, now, n)
		if wait > 0 || s.full.CompareAndSwap(full, next) {
			return wait
		}
	}
}
