package registry

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
)

// maxGathered is the most names of one call.
const maxGathered = 256

// gather makes one call of those that come while another is under way. When thousands of clients come
// or go at once, noting each for itself was a tenth of what that cost server and Redis. An error of the call
// is that of all its names, unless it is an each.
type gather struct {
	call func(ctx context.Context, server string, names []string) error

	mu   sync.Mutex // guards the fields below, and next's until it has begun
	busy bool
	next *gathered // nil for none; its call follows the one under way
}

// gathered is the names of one call.
type gathered struct {
	ctx    context.Context // of who came first: what he gave up must not be sent later, for nobody else either
	server string
	names  []string
	turn   chan struct{} // closed when the one who came first shall call
	done   chan struct{} // closed when err is set
	err    error
}

// do calls with name, and with others for the same server.
func (g *gather) do(ctx context.Context, server, name string) error {
	g.mu.Lock()
	b := g.next
	switch {
	case b != nil && b.server == server && len(b.names) < maxGathered:
		b.names = append(b.names, name)
		g.mu.Unlock()
		<-b.done
		return b.errOf(name)
	case b != nil: // of another server, as after a death, or full
		g.mu.Unlock()
		alone := gathered{err: g.call(ctx, server, []string{name})}
		return alone.errOf(name)
	}
	b = &gathered{ctx: ctx, server: server, names: []string{name}, turn: make(chan struct{}), done: make(chan struct{})}
	if g.busy {
		g.next = b
		g.mu.Unlock()
		<-b.turn
	} else {
		g.busy = true
		g.mu.Unlock()
	}
	b.err = g.call(b.ctx, b.server, b.names)
	g.pass()
	close(b.done)
	return b.errOf(name)
}

func (b *gathered) errOf(name string) error {
	if failed, ok := b.err.(each); ok {
		return failed[name]
	}
	return b.err
}

// pass lets the next call begin. Nobody joins it any more.
func (g *gather) pass() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.next == nil {
		g.busy = false
		return
	}
	close(g.next.turn)
	g.next = nil
}

// each is the error of a call of which some names failed, by name. In a Cluster one node can be away.
type each map[string]error

// Error implements error.
func (e each) Error() string { return errors.Join(slices.Collect(maps.Values(e))...).Error() }

// Unwrap are the errors, for [errors.Is].
func (e each) Unwrap() []error { return slices.Collect(maps.Values(e)) }

// add notes err, if there is one, for names.
func (e each) add(names []string, err error) {
	for _, name := range names {
		if err != nil {
			e[name] = err
		}
	}
}

// orNil is e, or nil when nothing failed.
func (e each) orNil() error {
	if len(e) == 0 {
		return nil
	}
	return e
}
