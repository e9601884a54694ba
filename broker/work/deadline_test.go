package work

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestDeadlines checks that each context ends in time, and that callers at about the same time
// share one.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const after = 16 * time.Second
		d := NewDeadlines(after)
		first := d.Context()
		returned := make(map[context.Context]int)
		for range 100 {
			ctx := d.Context()
			returned[ctx]++
			end, ok := ctx.Deadline()
			if left := time.Until(end); !ok || left < after || left > after+time.Second {
				t.Fatalf("%v left, want %v or up to a second more", left, after)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if len(returned) != 10 || returned[first] != 10 {
			t.Errorf("%d contexts in ten seconds, the first returned %d times; want 10 and 10", len(returned), returned[first])
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
