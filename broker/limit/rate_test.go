package limit

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestBucket takes tokens at given times.
func TestBucket(t *testing.T) {
	type take struct {
		at   time.Duration
		n    int
		wait time.Duration
	}
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		rate  Rate
		takes []take
	}{
		"no limit":                   {Rate{}, []take{{0, 1 << 30, 0}, {0, 1 << 30, 0}}},
		"zero":                       {PerSecond(0), []take{{0, 1 << 30, 0}, {0, 1, 0}}},
		"default burst":              {PerSecond(1), []take{{0, 1, 0}, {0, 1, 0}, {0, 1, 0}, {0, 1, 0}, {0, 1, time.Second}}},
		"burst, refill":              {New(2, 2), []take{{0, 1, 0}, {0, 1, 0}, {0, 1, 500 * ms}, {499 * ms, 1, ms}, {500 * ms, 1, 0}, {500 * ms, 1, 500 * ms}}},
		"burst is capped":            {New(2, 2), []take{{time.Hour, 1, 0}, {time.Hour, 1, 0}, {time.Hour, 1, 500 * ms}}},
		"a third of a second":        {New(3, 3), []take{{0, 1, 0}, {0, 1, 0}, {0, 1, 0}, {time.Second / 3, 1, 0}}},
		"below one per second":       {New(0.1, 1), []take{{0, 1, 0}, {9 * time.Second, 1, time.Second}, {10 * time.Second, 1, 0}}},
		"more than the burst":        {New(10, 10), []take{{0, 25, 0}, {0, 1, 1600 * ms}, {1599 * ms, 1, ms}, {1600 * ms, 1, 0}}},
		"refused take costs nothing": {New(1, 1), []take{{0, 1, 0}, {0, 50, time.Second}, {0, 50, time.Second}, {time.Second, 1, 0}}},
		"debt is capped":             {New(1, 1), []take{{0, 1 << 40, 0}, {0, 1, maxDebt + time.Second}, {maxDebt + time.Second, 1, 0}}},
	} {
		t.Run(name, func(t *testing.T) {
			var b Bucket
			for i, k := range c.takes {
				if wait := b.Take(c.rate, k.n, k.at); wait != k.wait {
					t.Errorf("take %d: %v, want %v", i, wait, k.wait)
				}
			}
		})
	}
}

func TestFull(t *testing.T) {
	var b Bucket
	if !b.Full(0) {
		t.Error("a new bucket is not full")
	}
	b.Take(New(2, 4), 3, 0)
	if b.Full(1499*time.Millisecond) || !b.Full(1500*time.Millisecond) {
		t.Error("the bucket is full too early or too late")
	}
}

func TestSeconds(t *testing.T) {
	for d, want := range map[time.Duration]int{0: 1, 1: 1, time.Second: 1, time.Second + 1: 2, time.Minute: 60} {
		if got := Seconds(d); got != want {
			t.Errorf("%v is %d s, want %d", d, got, want)
		}
	}
}

// TestShared checks that concurrent takers get exactly the tokens that there are.
func TestShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSharedBucket(PerSecond(50_000))
		for _, want := range []int64{200_000, 50_000} {
			var got atomic.Int64
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					for range 50_000 {
						if s.Take(1) == 0 {
							got.Add(1)
						}
					}
				})
			}
			all.Wait()
			if got.Load() != want {
				t.Errorf("%d tokens were taken, want %d", got.Load(), want)
			}
			<-time.After(time.Second)
		}
	})
	if (*SharedBucket)(nil).Take(1<<30) != 0 || NewSharedBucket(Rate{}).Take(1<<30) != 0 {
		t.Error("a bucket without a limit refused")
	}
}
