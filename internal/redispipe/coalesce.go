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

// A Coalescer merges calls: those that arrive while one is under way share the next. When thousands
// of clients come or go at once, one call for each took a tenth of the CPU of the broker and of
// Redis. The zero value with Call set is ready.
type Coalescer struct {
	// Call does the work for up to MaxNames names of one server. Its error is that of each of them,
	// unless it is a [Failed]. Calls do not overlap, except those for another server or beyond
	// MaxNames.
	Call func(ctx context.Context, server string, names []string) error

	mu   sync.Mutex // guards the fields below, and next's until it has begun
	busy bool
	next *coalesced // nil for none; its call follows the one under way
}

// coalesced is one call, and the names in it.
type coalesced struct {
	ctx    context.Context // of the first caller: a call that it abandoned must not be sent later
	server string
	names  []string
	turn   chan struct{} // closed when the first caller is to make the call
	done   chan struct{} // closed when err is set
	err    error
}

// Do calls with name, and with the names of other callers for the same server. It returns the error
// of name alone. The context is that of the caller that came first.
func (c *Coalescer) Do(ctx context.Context, server, name string) error {
	c.mu.Lock()
	b := c.next
	switch {
	case b != nil && b.server == server && len(b.names) < MaxNames:
		b.names = append(b.names, name)
		c.mu.Unlock()
		<-b.done
		return ErrorOf(b.err, name)
	case b != nil: // of another server, as after a death, or full
		c.mu.Unlock()
		return ErrorOf(c.Call(ctx, server, []string{name}), name)
	}
	b = &coalesced{ctx: ctx, server: server, names: []string{name}, turn: make(chan struct{}), done: make(chan struct{})}
	if c.busy {
		c.next = b
		c.mu.Unlock()
		<-b.turn
	} else {
		c.busy = true
		c.mu.Unlock()
	}
	b.err = c.Call(b.ctx, b.server, b.names)
	c.pass()
	close(b.done)
	return ErrorOf(b.err, name)
}

// pass lets the next call begin. From then on no name joins it.
func (c *Coalescer) pass() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil {
		c.busy = false
		return
	}
	close(c.next.turn)
	c.next = nil
}

// Failed is the error of a call in which some names failed, by name. In a Cluster one node can be
// away.
type Failed map[string]error

// ErrorOf returns what err, the error of a call for many names, says of one of them.
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

// Add notes err, if there is one, for names.
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
