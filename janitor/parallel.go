package janitor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// each calls do for all names, at most Parallel at a time, and waits for all calls. It starts no
// more calls after ctx has ended.
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

// maxErrors limits the errors that one round returns: if a store is unavailable, thousands of calls
// fail with the same error.
const maxErrors = 8

// errorList collects errors of many goroutines. The zero value is empty.
type errorList struct {
	mu      sync.Mutex // guards the fields below
	errs    []error    // the first maxErrors
	omitted int
}

func (l *errorList) add(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.errs) < maxErrors {
		l.errs = append(l.errs, err)
	} else {
		l.omitted++
	}
}

// join returns last and the collected errors as one error, or nil if there is none. After ctx has
// ended, it returns the error of ctx alone.
func (l *errorList) join(ctx context.Context, last ...error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	errs := append(last, l.errs...)
	if l.omitted > 0 {
		errs = append(errs, fmt.Errorf("and %d more errors", l.omitted))
	}
	return errors.Join(errs...)
}

// nameSet is a set that many goroutines add to. The zero value is empty.
type nameSet struct {
	mu    sync.Mutex // guards the field below
	names map[string]struct{}
}

func (s *nameSet) add(names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names == nil {
		s.names = map[string]struct{}{}
	}
	for _, name := range names {
		s.names[name] = struct{}{}
	}
}

// take returns the names, sorted, and removes them.
func (s *nameSet) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := slices.Sorted(maps.Keys(s.names))
	clear(s.names)
	return names
}
