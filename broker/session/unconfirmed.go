package session

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"switchboard/queue"
)

const (
	// maxUnconfirmed bounds the remembered unconfirmed binds.
	maxUnconfirmed = 1 << 14
	// maxResolved bounds the unconfirmed binds that one tick resolves: after an outage of the store
	// other work needs it too.
	maxResolved = 64
	// lateBindEnds is how long after its failure a bind may still be executed: the store finds it late
	// after queue.MaxBindDelay, and the clocks of store and broker may differ a little in speed.
	lateBindEnds = queue.MaxBindDelay + time.Second
)

// unconfirmedBinds remembers the bind calls that failed. The store may have executed them, or may
// execute them until they end: then a client is bound to this server without a session here. Each
// tick resolves some of them. A bind is resolved soon, and again after its end. The pool's workers
// and the tick use it.
type unconfirmedBinds struct {
	mu   sync.Mutex // guards the field below
	list map[boundClient]bindState
}

// boundClient names a failed bind. server is this server's id at the time of the call.
type boundClient struct{ client, server string }

// bindState is the state of a failed bind.
type bindState struct {
	ends     time.Time // when the store no longer executes it
	resolved bool      // only its end is awaited
}

// unconfirmedBind is one failed bind.
type unconfirmedBind struct {
	boundClient
	bindState
}

func (u unconfirmedBind) compare(other unconfirmedBind) int {
	return cmp.Or(strings.Compare(u.client, other.client), strings.Compare(u.server, other.server))
}

// add remembers a bind that has failed now.
func (l *unconfirmedBinds) add(client, server string) {
	l.put(unconfirmedBind{boundClient{client, server}, bindState{ends: time.Now().Add(lateBindEnds)}})
}

// put remembers a bind, unless a later one of the client is remembered.
func (l *unconfirmedBinds) put(u unconfirmedBind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.list == nil {
		l.list = make(map[boundClient]bindState)
	}
	if later, found := l.list[u.boundClient]; found && later.ends.After(u.ends) || !found && len(l.list) >= maxUnconfirmed {
		return
	}
	l.list[u.boundClient] = u.bindState
}

// take removes up to n binds that are to be resolved now, and returns them in a fixed order, which
// a simulation can repeat.
func (l *unconfirmedBinds) take(n int) []unconfirmedBind {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	var some []unconfirmedBind
	for u, s := range l.list {
		if s.resolved && now.Before(s.ends) {
			continue
		}
		if len(some) == n {
			break
		}
		some = append(some, unconfirmedBind{u, s})
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
			final := !time.Now().Before(u.ends)
			err := b.resolve(b.storeContext(), u.boundClient)
			if err != nil {
				b.opts.Logger.Warn().Err(err).Msg("unconfirmed bind not resolved; a later tick tries again")
			}
			if u.resolved = err == nil; !u.resolved || !final {
				b.unconfirmed.put(u)
			}
		})
	}
}

// resolve removes what an unconfirmed bind left in the store: the binding, unless a session here
// has it, or the client's entry in s_c_. It also notifies all servers of the client's generation,
// because the answer that named the client's previous server was lost.
func (b *binder) resolve(ctx context.Context, u boundClient) error {
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
func (b *binder) leftover(ctx context.Context, u boundClient) (left binding, current int64, err error) {
	defer b.locks.lock(u.client)() // excludes other binds of the client
	c, known, err := b.opts.Queue.Client(ctx, u.client)
	switch {
	case err != nil:
		return binding{}, 0, err
	case !known || c.Server != u.server:
		err = b.dropClient(ctx, u.server, u.client)
	case !b.clients.holds(u.client, c.Generation):
		left = binding{client: u.client, generation: c.Generation}
	}
	return left, c.Generation, err
}
