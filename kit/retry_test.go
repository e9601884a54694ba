package kit

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/internal/wire"
)

// TestRetry: an operation is tried until nothing has changed in between, with growing pauses.
func TestRetry(t *testing.T) {
	broken := errors.New("the store does not answer")
	for _, c := range []struct {
		changed  int   // attempts that fail with ErrChanged
		err      error // of the next one
		attempts int
		code     wire.ErrorCode
	}{{0, nil, 1, ""}, {3, nil, 4, ""}, {7, nil, 8, ""}, {2, broken, 3, ""}, {8, nil, 8, wire.Unavailable}} {
		synctest.Test(t, func(t *testing.T) {
			attempts, start := 0, time.Now()
			var pauses []time.Duration
			got, err := Retry(t.Context(), "room a", func() (int, error) {
				pauses = append(pauses, time.Since(start))
				start = time.Now()
				if attempts++; attempts <= c.changed {
					return 0, fmt.Errorf("%w: field x", ErrChanged)
				}
				return 7, c.err
			})
			e, _ := errors.AsType[*wire.Error](err)
			switch {
			case attempts != c.attempts:
				t.Errorf("%+v: %d attempts", c, attempts)
			case c.code != "" && (e == nil || e.Code != c.code || !errors.Is(err, ErrContended)):
				t.Errorf("%+v: %v", c, err)
			case c.code == "" && (!errors.Is(err, c.err) || got != 7):
				t.Errorf("%+v: %d, %v", c, got, err)
			}
			for i, pause := range pauses[1:] {
				if most := min(time.Millisecond<<i, longestPause); pause < most/2 || pause > most+1 {
					t.Errorf("pause %d is %v, want %v to %v", i, pause, most/2, most)
				}
			}
		})
	}
}

// TestRetryEnds: the end of the context ends a pause.
func TestRetryEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := Retry(ctx, "room a", func() (int, error) { cancel(); return 0, ErrChanged })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the error is %v", err)
		}
	})
}
