package redispipe

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
)

// MaxNames is the most names in one call of a [Coalescer].
const MaxNames = 256

// A Coalescer merges concurrent calls: calls that arrive while one is in flight share the next one.
// When thousands of clients connect or disconnect at once, one call for each took a tenth of the
// CPU of the broker and of Redis. The zero value with Call set is ready to use.
type Coalescer struct {
	// Call does the work for up to MaxNames names of one server. Its error applies to each name,
	// unless it is a [Failed]. Calls do not overlap, except calls for different servers and calls
	// beyond MaxNames.
	Call func(ctx context.Context, server string, names []string) error

	mu   sync.Mutex // guards the fields below, and the fields of next
	busy bool
	next *coalesced // nil for none; its call follows the one in flight
}

// coalesced is one call and its names.
type coalesced struct {
	ctx    context.Context // of the first caller
	server string
	names  []string
	start  chan struct{} // closed when the first caller may make the call
	done   chan struct{} // closed when err is set
	err    error
}

// Do makes a call for name, shared with other callers for the same server. It returns the error of
// name only. The call has the context of its first caller, so that it is not sent after that caller
// gave up. The other callers wait even if their contexts end.
func (c *Coalescer) Do(ctx context.Context, server, name string) error {
	c.mu.Lock()
	b := c.next
	switch {
	case b != nil && b.server == server && len(b.names) < MaxNames:
		b.names = append(b.names, name)
		c.mu.Unlock()
		<-b.done
		return ErrorOf(b.err, name)
	case b != nil: // full, or for another server
		c.mu.Unlock()
		return ErrorOf(c.Call(ctx, server, []string{name}), name)
	}
	b = &coalesced{ctx: ctx, server: server, names: []string{name}, start: make(chan struct{}), done: make(chan struct{})}
	if c.busy {
		c.next = b
		c.mu.Unlock()
		<-b.start
	} else {
		c.busy = true
		c.mu.Unlock()
	}
	b.err = c.Call(b.ctx, b.server, b.names)
	c.startNext()
	close(b.done)
	return ErrorOf(b.err, name)
}

// startNext starts the next call, which then accepts no more names.
func (c *Coalescer) startNext() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil {
		c.busy = false
		return
	}
	close(c.next.start)
	c.next = nil
}

// Failed is the error of a call that failed for some names: the errors by name. In a Cluster a
// single node may be unreachable.
type Failed map[string]error

// ErrorOf returns the error of one name from err, the error of a call for many names.
func ErrorOf(err error, name string) error {
	if failed, ok := err.(Failed); ok {
		return failed[name]
	}
	return err
}

// Error implements error.
func (f Failed) Error() string { return errors.Join(slices.Collect(maps.Values(f))...).Error() }

// Unwrap returns the errors, for [errors.Is].
func (f Failed) Unwrap() []error { return slices.Collect(maps.Values(f)) }

// Add sets err for names, if err is not nil.
func (f Failed) Add(names []string, err error) {
	for _, name := range names {
		if err != nil {
			f[name] = err
		}
	}
}

// OrNil returns f, or nil if nothing failed.
func (f Failed) OrNil() error {
	if len(f) == 0 {
		return nil
	}
	return f
}
