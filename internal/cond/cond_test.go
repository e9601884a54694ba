package cond

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var c Cond
		n := 0
		go func() {
			for range 3 {
				<-time.After(time.Millisecond)
				c.Change(func() { n++ })
			}
		}()
		if err := c.Await(ctx, func() bool { return n == 3 }); err != nil {
			t.Error(err)
		}
		if err := c.Await(ctx, func() bool { return n == 4 }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("without a change: %v", err)
		}
	})
}
