package session

import (
	"context"
	"errors"
	"time"

	"switchboard/internal/wire"
	"switchboard/queue"
)

// unbindLater has the pool end a binding. After a failure the next tick tries again.
func (b *binder) unbindLater(old binding) {
	b.opts.Pool.Go(func() {
		if err := b.unbind(b.storeContext(), old); err != nil {
			b.opts.Logger.Warn().Err(err).Msg("unbind failed; the next tick tries again")
			b.failed.add(old)
		}
	})
}

// retryUnbinds tries again to end the bindings for which that failed.
func (b *binder) retryUnbinds() {
	for _, old := range b.failed.take() {
		b.unbindLater(old)
	}
}

// unbind ends a binding if the store still has its generation: a client that was bound again, here
// or elsewhere, stays bound.
func (b *binder) unbind(ctx context.Context, old binding) error {
	defer b.locks.lock(old.client)()
	if b.clients.hasNewer(old.client, old.generation) {
		return nil // the newer binding has overwritten all of this one
	}
	if old.unsavedAck > 0 {
		if _, err := b.opts.Queue.Ack(ctx, old.client, old.generation, old.unsavedAck); err != nil && !fenced(err) {
			return err
		}
	}
	err := b.opts.Queue.Unbind(ctx, old.client, old.generation)
	rebound := false // to this server: its entry in s_c_ stays
	if fenced(err) {
		rebound, err = b.holds(ctx, old.client)
	}
	if user := wire.UserOf(old.client); err == nil && user != "" {
		var watchers []string
		watchers, err = b.opts.Registry.ReleaseUser(ctx, user, old.client, old.generation)
		b.opts.Notify.UserChanged(user, watchers)
		b.uncertainUsers.forget(old.client)
	}
	if err == nil && !rebound {
		err = b.dropClient(ctx, b.opts.ServerID(), old.client)
	}
	return err
}

// dropClient removes the client from the server's list. No generation fences this call. So if it is
// not known whether the store will execute it, a later beat compares the client's binding.
func (b *binder) dropClient(ctx context.Context, server, client string) error {
	err := b.opts.Registry.DropClient(ctx, server, client)
	if queue.OutcomeUnknown(err) {
		b.opts.Notify.Uncertain(client)
	}
	return err
}

// fenced returns whether the store refused a call because the client's binding has another
// generation by now, or is gone.
func fenced(err error) bool {
	return errors.Is(err, queue.ErrStale) || errors.Is(err, queue.ErrForgotten)
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
