package work

import (
	"slices"
	"testing"
)

// TestRetries checks the pauses between the tries, and that a success ends them.
func TestRetries(t *testing.T) {
	var r Retries[string]
	r.Failed("b", "a")
	var tries []int
	for tick := 1; tick <= 16; tick++ {
		due := r.Tick()
		if len(due) == 0 {
			continue
		}
		if !slices.Equal(due, []string{"a", "b"}) {
			t.Fatalf("tick %d: %q are due", tick, due)
		}
		tries = append(tries, tick)
		r.Failed(due...)
	}
	if !slices.Equal(tries, []int{1, 3, 7, 11, 15}) {
		t.Errorf("tries at the ticks %v", tries)
	}
	r.Done("a")
	r.Done("other")
	for range maxRetryTicks {
		if due := r.Tick(); slices.Contains(due, "a") {
			t.Error("a is due after its success")
		}
	}
	if due := r.Tick(); len(due) > 0 {
		t.Errorf("%q are due, but their try runs", due)
	}
	r.Failed("a")
	if due := r.Tick(); !slices.Equal(due, []string{"a"}) {
		t.Errorf("%q are due, want a: a new failure begins with a short pause", due)
	}
}
