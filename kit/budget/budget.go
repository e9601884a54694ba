package budget

import (
	"context"
	"errors"
	"fmt"
	"time"

	"switchboard/internal/wire"
)

// Budget is how many objects of a kind each user may have.
type Budget struct {
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
}

// settle is how long the creation of an object may take after the charge.
const settle = 30 * time.Second

// ErrSpent means that an owner has the most objects.
var ErrSpent = errors.New("the budget is spent")

// Charge charges an object that is about to be stored to its owner. fresh reports whether it was
// not charged before: if it is not stored then, Return must follow. The error is ErrSpent with the
// code full if the owner has the most objects.
func (b *Budget) Charge(ctx context.Context, owner, object string) (fresh bool, err error) {
	got, err := b.Store.charge(ctx, owner, b.Kind, object, b.Most)
	if err == nil && got == spent {
		if err = b.returnEnded(ctx, owner); err == nil {
			got, err = b.Store.charge(ctx, owner, b.Kind, object, b.Most)
		}
	}
	switch {
	case err != nil:
		return false, fmt.Errorf("charge %s of a user: %w", b.Kind, err)
	case got == spent:
		refusal := wire.Errorf(wire.Full, "user %s has %d %s, that is all (%s); one must end before the next", owner, b.Most, b.Kind, b.Setting)
		return false, fmt.Errorf("%w: %w", ErrSpent, &wire.DetailedError{Err: refusal, Data: map[string]int{"max": b.Most}})
	}
	return got == added, nil
}

// Return returns an object that has ended to the budget of its owner. An object that is not
// returned is found when the budget is spent.
func (b *Budget) Return(ctx context.Context, owner, object string) error {
	if err := b.Store.release(ctx, owner, b.Kind, object); err != nil {
		return fmt.Errorf("return %s to the budget of a user: %w", b.Kind, err)
	}
	return nil
}

// returnEnded returns the objects of an owner that have ended. Those that were charged a moment ago
// may not be stored yet.
func (b *Budget) returnEnded(ctx context.Context, owner string) error {
	objects, err := b.Store.charged(ctx, owner, b.Kind, settle)
	if err != nil || len(objects) == 0 {
		return err
	}
	ended, err := b.Ended(ctx, owner, objects)
	if err != nil || len(ended) == 0 {
		return err
	}
	return b.Store.release(ctx, owner, b.Kind, ended...)
}
