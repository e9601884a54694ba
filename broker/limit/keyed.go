package limit

import (
	"sync"
	"time"
)

// maxKeyed is how many buckets Keyed keeps. Above it, buckets that are not full may be forgotten.
const maxKeyed = 1 << 16

// Keyed is a token bucket for each key, such as a name or an address. It is safe for concurrent
// use. A nil Keyed has no limit.
type Keyed struct {
	rate  Rate
	epoch time.Time

	mu      sync.Mutex // guards buckets
	buckets map[string]Bucket
}

// NewKeyed returns a Keyed whose buckets are all full.
func NewKeyed(r Rate) *Keyed {
	return &Keyed{rate: r, epoch: time.Now(), buckets: map[string]Bucket{}}
}

// Take takes a token from the bucket of a key, or returns how long it is until a token is there.
func (k *Keyed) Take(key string) (wait time.Duration) {
	if k == nil || k.rate.None() {
		return 0
	}
	now := time.Since(k.epoch)
	k.mu.Lock()
	defer k.mu.Unlock()
	b, known := k.buckets[key]
	if wait = b.Take(k.rate, 1, now); wait > 0 {
		return wait
	}
	if !known {
		k.expireLocked(now)
	}
	k.buckets[key] = b
	return 0
}

// expireLocked looks at a few buckets in the random order of a map. It removes the full ones, which
// are like new ones, and above maxKeyed the others too.
func (k *Keyed) expireLocked(now time.Duration) {
	looked := 0
	for key, b := range k.buckets {
		if looked++; looked > 4 {
			return
		}
		if b.Full(now) || len(k.buckets) >= maxKeyed {
			delete(k.buckets, key)
		}
	}
}
