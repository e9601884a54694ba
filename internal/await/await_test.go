package await

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestPolling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, calls := time.Now(), 0
		third := func() bool { calls++; return calls == 3 }
		True(t, "the third call", third)
		if took := time.Since(start); calls != 3 || took != 2*fast {
			t.Errorf("True made %d calls in %v", calls, took)
		}
		calls = 0
		if err := Until(t.Context(), "the third call", third); err != nil || calls != 3 {
			t.Errorf("Until made %d calls and returned %v", calls, err)
		}
	})
}

func TestContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		want := errors.New("the last error")
		if err := Success(ctx, func() error { return want }); err != want {
			t.Errorf("Success returned %v, want the error of check", err)
		}
		if err := Until(ctx, "no server", func() bool { return false }); !errors.Is(err, context.DeadlineExceeded) ||
			err.Error() != "no server: context deadline exceeded" {
			t.Errorf("Until returned %v", err)
		}
		called := false
		if err := Success(ctx, func() error { called = true; return nil }); err != nil || !called {
			t.Errorf("Success with an ended context: called %v, %v; want one call", called, err)
		}
	})
}
