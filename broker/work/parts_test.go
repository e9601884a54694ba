package work

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestInParts checks that a part that does not answer delays no other one, and that it is asked
// once.
func TestInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // guards the fields below
		var calls, skipped []string
		items := []int{0, 1, 10, 11, 20, 21, 30, 31}
		InParts(t.Context(), items, func(n int) int { return n % 10 }, 1, time.Second, func(chunk []int) bool {
			answers := chunk[0]%10 == 0
			if !answers {
				time.Sleep(time.Hour)
			}
			mu.Lock()
			defer mu.Unlock()
			calls = append(calls, fmt.Sprint(chunk))
			return answers
		}, func(n int) { skipped = append(skipped, fmt.Sprint(n)) })
		if want := []string{"[0]", "[10]", "[20]", "[30]", "[1]"}; !slices.Equal(calls, want) {
			t.Errorf("calls %v, want %v", calls, want)
		}
		if want := []string{"11", "21", "31"}; !slices.Equal(skipped, want) {
			t.Errorf("%v were skipped, want %v", skipped, want)
		}
	})
}

func TestOnePart(t *testing.T) {
	var calls []int
	InParts(t.Context(), []int{1, 2, 3}, nil, 2, 0, func(chunk []int) bool {
		calls = append(calls, len(chunk))
		return true
	}, nil)
	if !slices.Equal(calls, []int{2, 1}) {
		t.Errorf("chunks of %v items, want 2 and 1", calls)
	}
	if part := PartOf(nil, func(int) string { return "" }); part != nil {
		t.Error("there are parts without a master")
	}
}

func TestTimedOut(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false}, {errors.New("refused"), false}, {fmt.Errorf("read: %w", os.ErrDeadlineExceeded), true},
		{fmt.Errorf("read: %w", context.DeadlineExceeded), true}, {context.Canceled, false},
	} {
		if got := TimedOut(c.err); got != c.want {
			t.Errorf("%v: %t, want %t", c.err, got, c.want)
		}
	}
}
