package client

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestBackoffBounds draws delays while something fails: up to the time for which it has failed.
func TestBackoffBounds(t *testing.T) {
	for _, tc := range []struct{ min, first, max time.Duration }{
		{200 * time.Millisecond, 800 * time.Millisecond, 20 * time.Second},
		{time.Second, 4 * time.Second, time.Second},
		{1, 4, 1 << 62},
	} {
		synctest.Test(t, func(t *testing.T) {
			for range 200 {
				b := backoff{min: tc.min, first: tc.first, max: tc.max}
				began := time.Now()
				for i := range 20 {
					age := time.Since(began)
					d := b.next()
					if ceiling := max(tc.min, min(max(age, tc.first), tc.max)); d < tc.min || d > ceiling {
						t.Fatalf("delay %d of %s..%s after %s is %s, want at most %s", i, tc.min, tc.max, age, d, ceiling)
					}
					pause(t.Context(), d)
				}
			}
		})
	}
}

func TestFirstDelaysAreSpread(t *testing.T) {
	low, high := time.Hour, time.Duration(0)
	for range 200 {
		b := newBackoff(Options{}.withDefaults(), 1)
		d := b.next()
		low, high = min(low, d), max(high, d)
	}
	if high-low < 400*time.Millisecond {
		t.Fatalf("200 clients reconnect within %s", high-low)
	}
}

// TestBackoffForgets: a good time makes up for a bad one.
func TestBackoffForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackoff(Options{}.withDefaults(), 1)
		if !b.forget(0) {
			t.Error("a new backoff has something to forget")
		}
		b.next()
		pause(t.Context(), 10*time.Second)
		if b.forget(4*time.Second) || b.age() != 6*time.Second {
			t.Errorf("it has failed for %s, want 6s", b.age())
		}
		if !b.forget(6*time.Second) || b.age() != 0 {
			t.Errorf("it has failed for %s, want nothing", b.age())
		}
	})
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
