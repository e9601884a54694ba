package work

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

// maxRetryTicks is the longest pause between two tries, in ticks.
const maxRetryTicks = 4

// Retries says when to repeat work that failed. Each piece of work has a name, and pauses of its
// own: 1, 2, 4, and then always 4 ticks. The zero value is empty.
type Retries[T cmp.Ordered] struct {
	count atomic.Int64 // len(names), for Done

	mu    sync.Mutex // guards the field below
	names map[T]*retry
}

// retry is the state of one name.
type retry struct {
	pause uint8 // ticks from the last failed try to the next one
	wait  uint8 // ticks that are left until the next one, 0 while it runs
}

// Failed reports that the work for names has failed.
func (r *Retries[T]) Failed(names ...T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range names {
		e := r.names[name]
		if e == nil {
			if r.names == nil {
				r.names = make(map[T]*retry)
			}
			e = new(retry)
			r.names[name] = e
		}
		e.pause = min(max(1, 2*e.pause), maxRetryTicks)
		e.wait = e.pause
	}
	r.count.Store(int64(len(r.names)))
}

// Done reports that the work for a name has succeeded, or is no longer needed. It costs a caller
// nothing while there is nothing to repeat.
func (r *Retries[T]) Done(name T) {
	if r.count.Load() == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.names, name)
	r.count.Store(int64(len(r.names)))
}

// Tick returns the names to try now, sorted. The caller then calls Failed or Done for each. Tick is
// called once a second.
func (r *Retries[T]) Tick() (due []T) {
	if r.count.Load() == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, e := range r.names {
		if e.wait == 0 {
			continue
		}
		if e.wait--; e.wait == 0 {
			due = append(due, name)
		}
	}
	slices.Sort(due)
	return due
}
