package work

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"time"
)

// InParts is InChunks for items of several parts of a store. The parts run beside each other, so
// one that does not answer delays no other one. part returns the part of an item; nil means that
// there is one part. If do returns false, the part does not answer: its other items go to skip.
func InParts[T any](ctx context.Context, items []T, part func(T) int, size int, pace time.Duration, do func(chunk []T) bool, skip func(T)) {
	EachPart(items, part, func(list []T) {
		pauses, end := context.WithCancel(ctx)
		defer end()
		answers := true
		InChunks(pauses, list, size, pace, func(chunk []T) {
			if !answers {
				for _, item := range chunk {
					skip(item)
				}
			} else if answers = do(chunk); !answers {
				end()
			}
		})
	})
}

// PartOf returns the part function for items with names. A nil master means that there is one part.
func PartOf[T any](master func(name string) int, name func(T) string) func(T) int {
	if master == nil {
		return nil
	}
	return func(item T) int { return master(name(item)) }
}

// TimedOut reports whether a call failed because there was no answer in time.
func TimedOut(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}

// FirstError keeps the first error of concurrent calls.
type FirstError struct {
	mu  sync.Mutex // guards err
	err error
}

// Note notes err, if it is not nil, and returns it.
func (f *FirstError) Note(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = cmp.Or(f.err, err)
	return err
}

// Err returns the first error that was noted, nil for none.
func (f *FirstError) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// EachPart calls do with the items of each part of a store, all at the same time, and returns after
// all calls. A nil part means that there is one part.
func EachPart[T any](items []T, part func(T) int, do func(list []T)) {
	parts := Parts(items, part)
	if len(parts) == 1 {
		do(parts[0]) // a simulation repeats it
		return
	}
	var running sync.WaitGroup
	for _, list := range parts {
		running.Go(func() { do(list) })
	}
	running.Wait()
}

// Parts returns the items of each part of a store. A nil part means that there is one part.
func Parts[T any](items []T, part func(T) int) [][]T {
	if part == nil {
		return [][]T{items}
	}
	byPart := map[int][]T{}
	for _, item := range items {
		n := part(item)
		byPart[n] = append(byPart[n], item)
	}
	return slices.Collect(maps.Values(byPart))
}
