package kit

import (
	"cmp"
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

const (
	// RoundEvery is the default of Rounds.Every.
	RoundEvery = time.Second
	// RoundLease is the default of Rounds.TaskLease.
	RoundLease = 10 * time.Second
	// SweepMost is the longest time in which each document has one round.
	SweepMost = time.Minute
	// forgetEvery is how often a broker forgets removed cards.
	forgetEvery = time.Minute
)

// Rounds makes rounds over the documents of an index. Several brokers may do so at once: each
// document is handed to one.
type Rounds struct {
	Index index.Index
	// Others are further indexes whose removed cards are forgotten, too.
	Others []index.Index
	// Lease makes one broker make the rounds of all. Nil means that each makes its own.
	Lease *leader.Lease
	// Every is the mean interval of the rounds. Zero means RoundEvery.
	Every time.Duration
	// TaskLease is how long a broker has for the tasks of a batch. Zero means RoundLease.
	TaskLease time.Duration
	// HasWork reports whether this broker makes the next round also without the lease. It may be nil.
	HasWork func() bool
	// All is the list that every card is in.
	All string
	// Batch is how many documents a broker takes at once.
	Batch int
	// Every document is due at least once in SweepLeast to SweepMost, in case that a broker has died
	// after a change. SweepRate is how many a second are due for that reason in between. Zero means
	// that documents are due only after a change.
	SweepLeast time.Duration
	SweepRate  int
	// Forget is called every minute, also without the lease. It may be nil.
	Forget func()
}

// Run calls round at the interval, with jitter, until ctx ends, while this broker has the lease.
// Every minute it then forgets the removed cards of the indexes. what names the documents in the
// log.
func (r *Rounds) Run(ctx context.Context, log zerolog.Logger, what string, round func(context.Context) error) error {
	every, forget := cmp.Or(r.Every, RoundEvery), time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every/2 + rand.N(every)):
		}
		err := r.Lease.Do(ctx, r.HasWork != nil && r.HasWork(), round)
		if err == nil && time.Since(forget) > forgetEvery {
			err, forget = r.forget(ctx), time.Now()
		}
		if err != nil && ctx.Err() == nil {
			log.Warn().Err(err).Msgf("a round over the %s is incomplete", what)
		}
	}
}

// forget forgets what is known of documents that have ended.
func (r *Rounds) forget(ctx context.Context) error {
	if r.Forget != nil {
		r.Forget()
	}
	if !r.Lease.Held() {
		return nil
	}
	err := r.Index.Sweep(ctx, 10*r.Batch)
	for _, other := range r.Others {
		err = errors.Join(err, other.Sweep(ctx, 10*r.Batch))
	}
	return err
}

// Take calls do with the tasks that are due, in batches of at least one task. sweep is the time
// after which a document is due again, 0 without SweepRate.
func (r *Rounds) Take(ctx context.Context, do func(tasks []index.Task, sweep time.Duration) error) error {
	var sweep time.Duration
	if r.SweepRate > 0 {
		counts, err := r.Index.Count(ctx, r.All)
		if err != nil {
			return err
		}
		sweep = min(max(r.SweepLeast, time.Duration(counts[0])*time.Second/time.Duration(r.SweepRate)), SweepMost)
	}
	for ctx.Err() == nil {
		tasks, err := r.Index.Take(ctx, r.Batch, cmp.Or(r.TaskLease, RoundLease))
		if err != nil || len(tasks) == 0 {
			return err
		}
		if err := do(tasks, sweep); err != nil || len(tasks) < r.Batch {
			return err
		}
	}
	return nil
}

// Finish calls finish for each task, and ends those without an error: a task is due again after
// next, or not at all if that is 0. One that fails is due again after its lease.
func (r *Rounds) Finish(ctx context.Context, tasks []index.Task, finish func(ctx context.Context, id string) (next time.Duration, err error)) error {
	done := map[index.Task]time.Duration{}
	var errs []error
	for _, t := range tasks {
		next, err := finish(ctx, t.ID)
		if err == nil {
			done[t] = next
		}
		errs = append(errs, err)
	}
	if len(done) > 0 {
		errs = append(errs, r.Index.Done(ctx, done))
	}
	return errors.Join(errs...)
}

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
