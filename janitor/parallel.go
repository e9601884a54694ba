package janitor

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
)

// each calls do for every name, Parallel of them at once, and returns when all are
// done. When ctx ends no more are begun.
func (j *Janitor) each(ctx context.Context, names []string, do func(name string)) {
	var g errgroup.Group
	g.SetLimit(j.opts.Parallel)
	for _, name := range names {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			do(name)
			return nil
		})
	}
	_ = g.Wait()
}

// mostErrors is how many errors of one round are told: when a store is away, thousands
// of calls say the same.
const mostErrors = 8

// problems collects errors of many goroutines. The zero value has none.
type problems struct {
	mu   sync.Mutex // guards the fields below
	kept []error
	more int
}

func (p *problems) add(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.kept) < mostErrors {
		p.kept = append(p.kept, err)
	} else {
		p.more++
	}
}

// join is all of them and last as one error, nil when there is none. After the end
// of ctx that is the whole story.
func (p *problems) join(ctx context.Context, last ...error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	errs := append(last, p.kept...)
	if p.more > 0 {
		errs = append(errs, fmt.Errorf("and %d errors more", p.more))
	}
	return errors.Join(errs...)
}
