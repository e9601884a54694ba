package limit

import (
	"math"
	"sync/atomic"
	"time"
)

// burstSeconds is for how long a rate may have been saved up, where nothing else is said.
const burstSeconds = 4

// slowest bounds what New takes for a rate: beyond it numbers do not fit.
const slowest = float64(10 * 24 * time.Hour)

// maxDebt bounds how long one large use keeps its user away.
const maxDebt = time.Minute

// Rate is so many a second, and so many at once. The zero value is no limit.
type Rate struct {
	each   float64 // ns that one takes to come back
	window int64   // ns that all of them take
}

// New returns a Rate; both numbers are above zero.
func New(perSecond float64, burst int) Rate {
	each := min(float64(time.Second)/perSecond, slowest)
	return Rate{each, int64(math.Ceil(each * float64(max(1, burst))))}
}

// PerSecond is n a second, with a burst of four seconds' worth; no limit where n is 0.
func PerSecond(n int) Rate {
	if n <= 0 {
		return Rate{}
	}
	return New(float64(n), burstSeconds*n)
}

// None says that there is no limit.
func (r Rate) None() bool { return r.each == 0 }

// take is the bucket of a Rate, written as one time: that at which it is full again (the generic cell rate algorithm of
// ITU-T I.371, annex A). Who finds one whole token may take n, and owes the rest: a large batch would else never find a
// bucket full that others drink from.
func (r Rate) take(full, now int64, n int) (next int64, wait time.Duration) {
	if r.None() {
		return full, 0
	}
	full = max(full, now)
	if wait := full + int64(r.each) - now - r.window; wait > 0 {
		return full, time.Duration(wait)
	}
	most := r.window + int64(maxDebt)
	return min(full+int64(min(r.each*float64(n), float64(most))), now+most), 0
}

// Bucket is a token bucket in 8 bytes: the time at which it is full again, in ns since any fixed moment. rate.Limiter of
// golang.org/x/time takes 80, since each holds its rate, a mutex and two time.Time; a connection that is busy has two buckets,
// an address one. The zero value is full. It belongs to one goroutine.
type Bucket int64

// Take takes n of r, or says how long it is until one can be taken.
func (b *Bucket) Take(r Rate, n int, now time.Duration) (wait time.Duration) {
	next, wait := r.take(int64(*b), int64(now), n)
	*b = Bucket(next)
	return wait
}

// Full says that the bucket is as good as a new one.
func (b Bucket) Full(now time.Duration) bool { return int64(b) <= int64(now) }

// SharedBucket is a bucket for many goroutines. A nil one is no limit.
type SharedBucket struct {
	rate  Rate
	epoch time.Time
	full  atomic.Int64
}

// NewSharedBucket returns a full bucket.
func NewSharedBucket(r Rate) *SharedBucket { return &SharedBucket{rate: r, epoch: time.Now()} }

// Take takes n, or says how long it is until one can be taken.
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
