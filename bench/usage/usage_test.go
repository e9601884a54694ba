package usage

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"
)

// TestSettle uses invented readings and does not wait.
func TestSettle(t *testing.T) {
	for _, tc := range []struct {
		name     string
		readings []int64 // the last one repeats
		want     int64
		settled  bool
	}{
		{"steady", []int64{1000, 1000}, 1000, true},
		{"steady after a while", []int64{1000, 2000, 3000, 3001}, 3001, true},
		{"shrinking", []int64{3000, 2000, 1000, 1000}, 1000, true},
		{"never", []int64{}, maxReadings * 1000, false},
	} {
		n := int64(0)
		read := func() (int64, error) {
			defer func() { n++ }()
			if len(tc.readings) == 0 {
				return n * 1000, nil
			}
			return tc.readings[min(int(n), len(tc.readings)-1)], nil
		}
		wait := func(context.Context, time.Duration) error { return nil }
		got, settled, err := Settle(t.Context(), read, wait)
		if got != tc.want || settled != tc.settled || err != nil {
			t.Errorf("%s: got %d, %v, %v", tc.name, got, settled, err)
		}
	}
}

// TestOwnUsage checks that CPU and OwnCPU agree on this process, and reads its memory.
func TestOwnUsage(t *testing.T) {
	if size, err := Resident(os.Getpid()); err != nil || size < 1<<20 {
		t.Errorf("resident: %d, %v", size, err)
	}
	own, err1 := OwnCPU()
	other, err2 := CPU(os.Getpid())
	again, err3 := OwnCPU()
	if err := errors.Join(err1, err2, err3); err != nil || other < own-tick || other > again+tick {
		t.Errorf("getrusage reports %v and %v, and the clock between them %v (%v)", own, again, other, err)
	}
	if _, err := CPU(1 << 26); err == nil {
		t.Error("CPU returned no error for a missing process")
	}
}

// tick is the largest difference between CPU and OwnCPU. One of them may lag by a time slice.
const tick = 10 * time.Millisecond
