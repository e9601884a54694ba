package work

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestDeadlines: each context ends within its time, and those who ask together share one.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const after = 16 * time.Second
		d := NewDeadlines(after)
		first := d.Context()
		given := make(map[context.Context]int)
		for range 100 {
			ctx := d.Context()
			given[ctx]++
			end, ok := ctx.Deadline()
			if left := time.Until(end); !ok || left < after || left > after+time.Second {
				t.Fatalf("%v left, want %v and a second at most", left, after)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if len(given) != 10 || given[first] != 10 {
			t.Errorf("%d contexts were given out in ten seconds, the first %d times, want 10 and 10", len(given), given[first])
		}
		if first.Err() != nil {
			t.Errorf("the first ended after 10 s: %v", first.Err())
		}
		<-first.Done()
		if !errors.Is(first.Err(), context.DeadlineExceeded) {
			t.Errorf("the first ended with %v", first.Err())
		}
	})
}
