package account

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/kit/index"
)

// sweptIndex counts how often it forgets removed cards.
type sweptIndex struct {
	index.Index
	sweeps int
}

// Sweep implements index.Index.
func (i *sweptIndex) Sweep(ctx context.Context, n int) error {
	i.sweeps++
	return i.Index.Sweep(ctx, n)
}

// TestForgetsRemovedCards: the list of accounts forgets those that have ended. They would otherwise
// stay in the store forever.
func TestForgetsRemovedCards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lists := &sweptIndex{Index: index.NewMemory()}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		if err := (&Accounts{index: lists}).Run(ctx); err != nil || lists.sweeps == 0 {
			t.Errorf("it forgot %d times, %v", lists.sweeps, err)
		}
	})
}
