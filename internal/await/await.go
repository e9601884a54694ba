// Package await polls conditions that have no signal, such as the state of Redis or of another
// process. For state in the same process, use a channel or package cond.
package await

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

const (
	// Timeout is how long True waits.
	Timeout = 20 * time.Second

	fast = 5 * time.Millisecond  // between two polls of True
	slow = 20 * time.Millisecond // between two polls of the others, which mostly wait for processes
)

// True polls condition until it returns true. It ends the test after Timeout. The failure contains
// the text what, a description of the condition.
func True(tb testing.TB, what string, condition func() bool) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	if err := poll(ctx, fast, isTrue(condition)); err != nil {
		tb.Fatalf("still not true after %v: %s", Timeout, what)
	}
}

// NoError polls check until it returns nil. It ends the test with the last error of check when ctx
// ends.
func NoError(ctx context.Context, tb testing.TB, what string, check func() error) {
	tb.Helper()
	if err := Success(ctx, check); err != nil {
		tb.Fatalf("%s: %v", what, err)
	}
}

// Until polls condition until it returns true. If ctx ends first, Until returns an error that
// begins with the text what, a description of the failure.
func Until(ctx context.Context, what string, condition func() bool) error {
	if err := poll(ctx, slow, isTrue(condition)); err != nil {
		return fmt.Errorf("%s: %w", what, ctx.Err())
	}
	return nil
}

// Success polls check until it returns nil. If ctx ends first, Success returns the last error of
// check.
func Success(ctx context.Context, check func() error) error { return poll(ctx, slow, check) }

var errFalse = errors.New("the condition is false")

func isTrue(condition func() bool) func() error {
	return func() error {
		if !condition() {
			return errFalse
		}
		return nil
	}
}

// poll calls check at least once, and then every interval.
func poll(ctx context.Context, interval time.Duration, check func() error) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

// Pause waits for d, or until ctx ends, and then returns the error of ctx.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}
