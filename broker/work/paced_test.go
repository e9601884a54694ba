package work

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestInChunks checks when the calls are made, and that the end of the context ends the pauses.
func TestInChunks(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			began := time.Now()
			var at []time.Duration
			var sizes []int
			InChunks(ctx, make([]struct{}, 7), 2, time.Second, func(chunk []struct{}) {
				at, sizes = append(at, time.Since(began)), append(sizes, len(chunk))
				if cancelled {
					cancel()
				} else if len(at) == 2 {
					time.Sleep(400 * time.Millisecond) // longer than until the next call
				}
			})
			want := []time.Duration{0, 250 * time.Millisecond, 650 * time.Millisecond, 750 * time.Millisecond}
			if cancelled {
				want = make([]time.Duration, 4)
			}
			if !slices.Equal(at, want) || !slices.Equal(sizes, []int{2, 2, 2, 1}) {
				t.Errorf("cancelled %v: calls at %v of %v items, want them at %v", cancelled, at, sizes, want)
			}
		})
	}
}
