package budget

import (
	"context"
	"fmt"
)

// Usage returns how many objects of an owner are charged, and the most. It returns those that have
// ended first.
func (b *Budget) Usage(ctx context.Context, owner string) (used, most int, err error) {
	if err = b.returnEnded(ctx, owner); err == nil {
		var objects []string
		objects, err = b.Objects(ctx, owner)
		used = len(objects)
	}
	return used, b.opts.Most, err
}

// Objects returns the objects of an owner that are charged. Some may have ended.
func (b *Budget) Objects(ctx context.Context, owner string) ([]string, error) {
	objects, err := b.opts.Store.charged(ctx, owner, b.opts.Kind, 0)
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
