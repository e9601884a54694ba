package session

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
)

const (
	// maxUnconfirmed bounds the remembered unconfirmed binds.
	maxUnconfirmed = 1 << 12
	// maxResolved bounds the unconfirmed binds that one tick resolves: after an outage of the store
	// other work needs it too.
	maxResolved = 64
)

// unconfirmedBinds remembers the bind calls that failed. The store may have executed them: then
// a client is bound to this server without a session here. Each tick resolves some of
// them. The pool's workers and the tick use it.
type unconfirmedBinds struct {
	mu   sync.Mutex // guards the field below
	list map[unconfirmedBind]struct{}
}

// unconfirmedBind is one failed bind. server is this server's id at the time of the call.
type unconfirmedBind struct{ client, server string }

func (u unconfirmedBind) compare(other unconfirmedBind) int {
	return cmp.Or(strings.Compare(u.client, other.client), strings.Compare(u.server, other.server))
}

// add remembers a failed bind.
func (l *unconfirmedBinds) add(u unconfirmedBind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.list == nil {
		l.list = make(map[unconfirmedBind]struct{})
	}
	if len(l.list) < maxUnconfirmed {
		l.list[u] = struct{}{}
	}
}

// take removes up to n binds and returns them in a fixed order, which a simulation can repeat.
func (l *unconfirmedBinds) take(n int) []unconfirmedBind {
	l.mu.Lock()
	defer l.mu.Unlock()
	var some []unconfirmedBind
	for u := range l.list {
		if len(some) == n {
			break
		}
		some = append(some, u)
		delete(l.list, u)
	}
	slices.SortFunc(some, unconfirmedBind.compare)
	return some
}

// resolveUnconfirmed has the pool resolve some of the unconfirmed binds. After a failure a later
// tick tries again.
func (b *binder) resolveUnconfirmed() {
	for _, u := range b.unconfirmed.take(maxResolved) {
		b.opts.Pool.Go(func() {
			if err := b.resolve(b.storeContext(), u); err != nil {
				b.opts.Logger.Warn().Err(err).Msg("unconfirmed bind not resolved; a later tick tries again")
				b.unconfirmed.add(u)
			}
		})
	}
}

// resolve removes what an unconfirmed bind left in the store: the binding, unless a session here
// has it, or the client's entry in s_c_. It also notifies all servers of the client's generation,
// because the answer that named the client's previous server was lost.
func (b *binder) resolve(ctx context.Context, u unconfirmedBind) error {
	left, current, err := b.leftover(ctx, u)
	if err != nil {
		return err
	}
	if current > 0 {
		b.clients.supersede(u.client, current)
		b.opts.Notify.Superseded("", u.client, current)
	}
	if left.generation == 0 {
		return nil
	}
	return b.unbind(ctx, left)
}

// leftover returns the binding that u made if no session has it, or a zero binding. It also returns
// the client's current generation.
func (b *binder) leftover(ctx context.Context, u unconfirmedBind) (left binding, current int64, err error) {
	defer b.locks.lock(u.client)() // excludes other binds of the client
	c, known, err := b.opts.Queue.Client(ctx, u.client)
	switch {
	case err != nil:
		return binding{}, 0, err
	case !known || c.Server != u.server:
		err = b.opts.Registry.DropClient(ctx, u.server, u.client)
	case !b.clients.holds(u.client, c.Generation):
		left = binding{client: u.client, generation: c.Generation}
	}
	return left, c.Generation, err
}
