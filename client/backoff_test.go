package client

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestBackoffBounds draws delays while something fails: up to the time for which it has failed, and
// later up to a third of it.
func TestBackoffBounds(t *testing.T) {
	for _, tc := range []struct{ failing, least, most time.Duration }{
		{0, 500 * time.Millisecond, 800 * time.Millisecond},
		{time.Second, 800 * time.Millisecond, time.Second},
		{4 * time.Second, 3 * time.Second, 4 * time.Second},
		{12 * time.Second, 3 * time.Second, 4 * time.Second},
		{18 * time.Second, 5 * time.Second, 6 * time.Second},
		{time.Minute, 17 * time.Second, 20 * time.Second},
		{time.Hour, 17 * time.Second, 20 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBackoff(Options{}.withDefaults(), 1)
			b.next()
			pause(t.Context(), tc.failing)
			low, high := time.Hour, time.Duration(0)
			for range 1000 {
				d := b.next()
				low, high = min(low, d), max(high, d)
			}
			if low < b.min || low > 2*b.min+tc.least/10 || high < tc.least || high > tc.most {
				t.Errorf("after %s the delays are from %s to %s, want up to %s", tc.failing, low, high, tc.most)
			}
		})
	}
}

// TestBackoffOptions: no bound and no overflow goes beyond the options.
func TestBackoffOptions(t *testing.T) {
	for _, o := range []Options{
		{BackoffMin: time.Second, BackoffMax: time.Second},
		{BackoffMin: 1, BackoffMax: 1 << 62},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBackoff(o, 3)
			for range 200 {
				d := b.next()
				if d < o.BackoffMin || d > o.BackoffMax {
					t.Fatalf("%s is not in %s..%s", d, o.BackoffMin, o.BackoffMax)
				}
				pause(t.Context(), d)
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
