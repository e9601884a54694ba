package client

import (
	"testing"
	"time"
)

func TestBackoffBounds(t *testing.T) {
	for _, tc := range []struct {
		min, max time.Duration
		ceilings []time.Duration
	}{
		{min: 200 * time.Millisecond, max: 20 * time.Second, ceilings: []time.Duration{
			800 * time.Millisecond, 1600 * time.Millisecond, 3200 * time.Millisecond, 6400 * time.Millisecond,
			12800 * time.Millisecond, 20 * time.Second, 20 * time.Second,
		}},
		{min: time.Second, max: time.Second, ceilings: []time.Duration{time.Second, time.Second}},
		{min: 1, max: 1 << 62, ceilings: []time.Duration{4, 8, 16}},
	} {
		for range 200 {
			b := backoff{min: tc.min, max: tc.max}
			for i, ceiling := range tc.ceilings {
				if d := b.next(); d < tc.min || d > ceiling {
					t.Fatalf("delay %d of %s..%s is %s, want at most %s", i, tc.min, tc.max, d, ceiling)
				}
			}
			for range 100 {
				if d := b.next(); d < tc.min || d > tc.max {
					t.Fatalf("delay %s is not within %s..%s", d, tc.min, tc.max)
				}
			}
			if b.reset(); b.next() > 4*tc.min {
				t.Fatal("the reset changed nothing")
			}
		}
	}
}

func TestFirstDelaysAreSpread(t *testing.T) {
	low, high := time.Hour, time.Duration(0)
	for range 200 {
		b := backoff{min: 200 * time.Millisecond, max: 20 * time.Second}
		d := b.next()
		low, high = min(low, d), max(high, d)
	}
	if high-low < 400*time.Millisecond {
		t.Fatalf("200 clients reconnect within %s", high-low)
	}
}

func TestShortConnectionsDoNotResetTheBackoff(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		var waited time.Duration
		for range 12 {
			p, _ := s.accept()
			p.drop()
			start := time.Now()
			p = <-s.peers
			waited = max(waited, time.Since(start))
			p.drop()
		}
		if waited < 2*time.Second { // twelve draws below 2 s have a probability under 1e-6
			s.Fatalf("the longest wait was %s", waited)
		}
	})
}
