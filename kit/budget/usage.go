package budget

import (
	"context"
	"fmt"
	"slices"
)

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
