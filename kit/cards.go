package kit

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"switchboard/internal/leader"
	"switchboard/kit/index"
)

// CardsBatch is how many cards a round of [Cards] computes at once.
const CardsBatch = 50

// Cards keeps the cards of an index up to date. It computes a card after each change that this
// broker notes, and every card from time to time.
type Cards struct {
	Index index.Index
	// Lease makes one broker compute the cards that are due. A broker that has noted changes does so
	// at its next round, too. Nil means that all brokers do.
	Lease *leader.Lease
	// All is the list that every card is in.
	All string
	// Compute computes the cards of documents, and returns them in the order of the ids.
	Compute func(ctx context.Context, ids []string) []Computed

	mu      sync.Mutex          // guards changed
	changed map[string]struct{} // ids since the last round
}

// Computed is a computed card.
type Computed struct {
	// Card has no lists if there is no document.
	Card index.Card
	// Changes is the time until the card changes without an operation. Zero means that it does not.
	Changes time.Duration
	Err     error
}

// Note notes that documents have changed. The next round computes their cards.
func (c *Cards) Note(ids ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changed == nil {
		c.changed = make(map[string]struct{})
	}
	for _, id := range ids {
		c.changed[id] = struct{}{}
	}
}

// hasChanged reports whether a document was noted since the last round.
func (c *Cards) hasChanged() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.changed) > 0
}

// take returns the ids that were noted, and forgets them.
func (c *Cards) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids := slices.Collect(maps.Keys(c.changed))
	c.changed = nil
	return ids
}

// Run makes a round every second, with jitter, until ctx ends. what names the documents in the log.
func (c *Cards) Run(ctx context.Context, log zerolog.Logger, what string) error {
	return c.rounds().Run(ctx, log, what, c.Round)
}

func (c *Cards) rounds() *Rounds {
	return &Rounds{
		Index: c.Index, Lease: c.Lease, HasWork: c.hasChanged, All: c.All, Batch: CardsBatch, SweepLeast: 10 * time.Second, SweepRate: 100,
	}
}

// Round computes the cards of the documents that have changed or are due.
func (c *Cards) Round(ctx context.Context) error {
	if ids := c.take(); len(ids) > 0 {
		if err := c.Index.Schedule(ctx, 0, ids...); err != nil {
			c.Note(ids...)
			return err
		}
	}
	return c.rounds().Take(ctx, func(tasks []index.Task, sweep time.Duration) error { return c.refresh(ctx, tasks, sweep) })
}

// refresh computes the cards of documents. A task that fails is due again after its lease.
func (c *Cards) refresh(ctx context.Context, tasks []index.Task, sweep time.Duration) error {
	ids := make([]string, len(tasks))
	for i, t := range tasks {
		ids[i] = t.ID
	}
	var errs []error
	for i, computed := range c.Compute(ctx, ids) {
		err := computed.Err
		if err == nil {
			err = c.Index.Put(ctx, computed.Card)
		}
		if err == nil {
			err = c.Index.Done(ctx, map[index.Task]time.Duration{tasks[i]: computed.nextLook(sweep)})
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// nextLook returns the time until the card is due again, or 0 if there is no document.
func (c *Computed) nextLook(sweep time.Duration) time.Duration {
	if len(c.Card.Lists) == 0 {
		return 0
	}
	next := sweep - rand.N(sweep/10) // spreads documents that were made at once
	if c.Changes > 0 {
		next = min(next, c.Changes)
	}
	return next
}
