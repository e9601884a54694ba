package kit

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
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
