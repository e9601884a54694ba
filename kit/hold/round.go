package hold

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"switchboard/kit/index"
)

// Times and sizes of the round.
const (
	roundEvery = time.Second
	// taskLease is how long a broker has for the resources of a batch.
	taskLease = 10 * time.Second
	// batchSize is how many resources are read in one round trip.
	batchSize = 50
	// Every resource is read once in sweepLeast to sweepMost, in case that a broker has died after a
	// change. All brokers together read sweepRate resources a second in between.
	sweepLeast = 10 * time.Second
	sweepMost  = time.Minute
	sweepRate  = 100
	// forgetEvery is how often a broker forgets removed cards.
	forgetEvery = time.Minute
)

// changes are the resources that this broker has changed since its last round.
type changes struct {
	mu    sync.Mutex // guards names
	names map[string]struct{}
}

func (c *changes) add(names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.names == nil {
		c.names = make(map[string]struct{})
	}
	for _, name := range names {
		c.names[name] = struct{}{}
	}
}

// take returns the names, and forgets them.
func (c *changes) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := slices.Collect(maps.Keys(c.names))
	c.names = nil
	return names
}

// Run makes a round every second, with jitter, until ctx ends. Only the list of resources and the
// metrics need it.
func (h *Holds) Run(ctx context.Context) error {
	log, forget := h.host.Logger(), time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(roundEvery/2 + rand.N(roundEvery)):
		}
		err := h.Round(ctx)
		if err == nil && time.Since(forget) > forgetEvery {
			err, forget = h.opts.Index.Sweep(ctx, 10*batchSize), time.Now()
		}
		if err != nil && ctx.Err() == nil {
			log.Warn().Err(err).Msg("a round over the resources is incomplete")
		}
	}
}

// Round computes the cards of the resources that have changed or are due. Several brokers may run
// it at once: each resource is handed to one.
func (h *Holds) Round(ctx context.Context) error {
	if names := h.changed.take(); len(names) > 0 {
		if err := h.opts.Index.Schedule(ctx, 0, names...); err != nil {
			h.changed.add(names...)
			return err
		}
	}
	counts, err := h.opts.Index.Count(ctx, allList)
	if err != nil {
		return err
	}
	sweep := min(max(sweepLeast, time.Duration(counts[0])*time.Second/sweepRate), sweepMost)
	for ctx.Err() == nil {
		tasks, err := h.opts.Index.Take(ctx, batchSize, taskLease)
		if err != nil {
			return err
		}
		if err := h.refresh(ctx, tasks, sweep); err != nil {
			return err
		}
		if len(tasks) < batchSize {
			break
		}
	}
	return nil
}

// refresh computes the cards of resources. A task that fails is due again after its lease.
func (h *Holds) refresh(ctx context.Context, tasks []index.Task, sweep time.Duration) error {
	if len(tasks) == 0 {
		return nil
	}
	names := make([]string, len(tasks))
	for i, t := range tasks {
		names[i] = t.ID
	}
	var errs []error
	for i, l := range lookAt(ctx, h.host, names) {
		if l.err == nil {
			l.err = h.opts.Index.Put(ctx, l.card())
		}
		if l.err == nil {
			l.err = h.opts.Index.Done(ctx, map[index.Task]time.Duration{tasks[i]: l.nextLook(sweep)})
		}
		errs = append(errs, l.err)
	}
	return errors.Join(errs...)
}

// nextLook returns the time until the resource is due again, or 0 if there is no resource.
func (l *look) nextLook(sweep time.Duration) time.Duration {
	if l.status == nil {
		return 0
	}
	next := sweep - rand.N(sweep/10) // spreads resources that were made at once
	if l.next > 0 {
		next = min(next, max(time.Millisecond, millis(l.next-l.clock+1)))
	}
	return next
}
