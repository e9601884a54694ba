package kit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"switchboard/internal/wire"
)

const (
	// MaxAttempts is how often an operation reads and decides while others change what it has read.
	MaxAttempts = 8
	// longestPause is the longest time between two attempts.
	longestPause = 50 * time.Millisecond
)

var (
	// ErrChanged means that what an operation has read has changed, so that it must read again.
	ErrChanged = errors.New("what was read has changed")
	// ErrContended means that it has changed at every attempt of Retry.
	ErrContended = errors.New("all attempts have failed")
)

// Retry calls try until it returns another error than ErrChanged, at most MaxAttempts times. In
// between it waits, at first about a millisecond and then up to 50 ms: operations that change the
// same thing would otherwise refuse each other again and again. After the last attempt the error is
// ErrContended with the code unavailable, and if ctx ends that of ctx. what names the thing in the
// error.
func Retry[T any](ctx context.Context, what string, try func() (T, error)) (T, error) {
	for i := range MaxAttempts {
		result, err := try()
		if !errors.Is(err, ErrChanged) {
			return result, err
		}
		if i == MaxAttempts-1 {
			break
		}
		most := min(time.Millisecond<<i, longestPause)
		select {
		case <-time.After(most/2 + rand.N(most)/2 + 1):
		case <-ctx.Done():
			return result, ctx.Err()
		}
	}
	var none T
	refusal := wire.Errorf(wire.Unavailable, "%s: others change it all the time; try again", what)
	return none, fmt.Errorf("%w: %w", ErrContended, refusal)
}
