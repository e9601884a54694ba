package budget

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"switchboard/internal/wire"
)

// Options configures a [Budget].
type Options struct {
	// Store is required.
	Store Store
	// Kind names the objects in keys and errors, such as rooms.
	Kind string
	// Setting names the setting of Most in errors.
	Setting string
	// Most is the most objects of an owner.
	Most int
	// Ended returns those of the objects that do not exist, or do not belong to the owner any more.
	Ended func(ctx context.Context, owner string, objects []string) ([]string, error)
	// Endless means that the objects do not end by themselves. Their charges stay with them, and not
	// only for 30 days.
	Endless bool
	Log     zerolog.Logger
}

// Budget is how many objects of a kind each user may have.
type Budget struct {
	opts    Options
	refused prometheus.Counter
}

// New returns a budget.
func New(o Options) *Budget {
	return &Budget{o, prometheus.NewCounter(prometheus.CounterOpts{
		Name: "switchboard_budget_refusals_total", ConstLabels: prometheus.Labels{"kind": o.Kind},
		Help: "Objects that were refused because their user has the most, by kind: rooms, boards or avatars.",
	})}
}

// Metrics returns the metrics of the budget.
func (b *Budget) Metrics() []prometheus.Collector { return []prometheus.Collector{b.refused} }

// settle is how long the creation of an object may take after the charge.
const settle = 30 * time.Second

// ErrSpent means that an owner has the most objects.
var ErrSpent = errors.New("the budget is spent")

// Charge charges an object that is about to be stored to its owner. fresh reports whether it was
// not charged before: if it is not stored then, Return must follow. The error is ErrSpent with the
// code full if the owner has the most objects. Then Charge has looked at no more than maxLook of
// them, and the next Charge looks at others.
func (b *Budget) Charge(ctx context.Context, owner, object string) (fresh bool, err error) {
	got, err := b.charge(ctx, owner, object)
	if err == nil && got == spent {
		if err = b.returnOldest(ctx, owner); err == nil {
			got, err = b.charge(ctx, owner, object)
		}
	}
	switch {
	case err != nil:
		return false, fmt.Errorf("charge %s of a user: %w", b.opts.Kind, err)
	case got == spent:
		b.refused.Inc()
		refusal := wire.Errorf(wire.Full, "user %s has %d %s, that is all (%s); one must end before the next", owner, b.opts.Most, b.opts.Kind, b.opts.Setting)
		return false, fmt.Errorf("%w: %w", ErrSpent, refusal.With(map[string]int{"max": b.opts.Most}))
	}
	return got == added, nil
}

func (b *Budget) charge(ctx context.Context, owner, object string) (outcome, error) {
	ttl := keep
	if b.opts.Endless {
		ttl = 0
	}
	return b.opts.Store.charge(ctx, owner, b.opts.Kind, object, b.opts.Most, ttl)
}

// Return returns an object that has ended to the budget of its owner, "" for none. An object that
// is not returned is found after the budget is spent.
func (b *Budget) Return(ctx context.Context, owner, object string) {
	if owner == "" {
		return
	}
	if err := b.opts.Store.release(ctx, owner, b.opts.Kind, object); err != nil {
		b.opts.Log.Warn().Err(err).Str(b.opts.Kind, object).Msg("the budget of a user has the object until it is spent")
	}
}

// maxLook is how many objects a call looks at if the budget is spent.
const maxLook = 100

// returnOldest returns the objects of an owner that have ended, if they are among the oldest. The
// next call looks at others.
func (b *Budget) returnOldest(ctx context.Context, owner string) error {
	objects, err := b.opts.Store.charged(ctx, owner, b.opts.Kind, settle, maxLook)
	if err != nil {
		return err
	}
	ended, err := b.returnEnded(ctx, owner, objects)
	if err != nil || len(ended) == len(objects) {
		return err
	}
	left := slices.DeleteFunc(objects, func(object string) bool { return slices.Contains(ended, object) })
	return b.opts.Store.postpone(ctx, owner, b.opts.Kind, settle, left...)
}

// returnEnded returns those of the objects of an owner that have ended. They must have been charged
// before settle: an object that was charged a moment ago may not be stored yet.
func (b *Budget) returnEnded(ctx context.Context, owner string, objects []string) (ended []string, err error) {
	if len(objects) > 0 {
		ended, err = b.opts.Ended(ctx, owner, objects)
	}
	if err != nil || len(ended) == 0 {
		return nil, err
	}
	return ended, b.opts.Store.release(ctx, owner, b.opts.Kind, ended...)
}

// Usage returns how many objects of an owner are charged, and the most. It returns those that have
// ended first.
func (b *Budget) Usage(ctx context.Context, owner string) (used, most int, err error) {
	old, err := b.opts.Store.charged(ctx, owner, b.opts.Kind, settle, 0)
	for some := range slices.Chunk(old, maxLook) {
		if err == nil {
			_, err = b.returnEnded(ctx, owner, some)
		}
	}
	if err == nil {
		old, err = b.Objects(ctx, owner)
		used = len(old)
	}
	return used, b.opts.Most, err
}

// Objects returns the objects of an owner that are charged. Some may have ended.
func (b *Budget) Objects(ctx context.Context, owner string) ([]string, error) {
	objects, err := b.opts.Store.charged(ctx, owner, b.opts.Kind, 0, 0)
	if err != nil {
		return nil, fmt.Errorf("read %s of a user: %w", b.opts.Kind, err)
	}
	return objects, nil
}

// Forget returns all objects of owners that have ended.
func (b *Budget) Forget(ctx context.Context, owners ...string) error {
	for _, owner := range owners {
		objects, err := b.Objects(ctx, owner)
		if err == nil && len(objects) > 0 {
			err = b.opts.Store.release(ctx, owner, b.opts.Kind, objects...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
