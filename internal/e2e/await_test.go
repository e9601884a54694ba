package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// eventually asks again and again until check has no objection: Redis rings no bell.
func eventually(ctx context.Context, t *testing.T, what string, check func() error) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(fmt.Errorf("%s: %w", what, err))
		}
	}
}
