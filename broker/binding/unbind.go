package binding

import (
	"context"
	"errors"
	"time"

	"switchboard/internal/wire"
	"switchboard/queue"
)

// UnbindLater has the pool end a binding. After a failure the next tick tries again.
func (b *Binder) UnbindLater(old Binding) {
	b.unbinding.Add(1)
	b.opts.Pool.Go(func() {
		defer b.unbinding.Add(-1)
		if err := b.unbind(b.opts.StoreContext(), old); err != nil {
			b.opts.Logger.Warn().Err(err).Msg("unbind failed; the next tick tries again")
			b.failed.add(old)
		}
	})
}

// retryUnbinds tries again to end the bindings for which that failed.
func (b *Binder) retryUnbinds() {
	for _, old := range b.failed.take() {
		b.UnbindLater(old)
	}
}

// unbind ends a binding if the store still has its generation: a client that was bound again, here
// or elsewhere, stays bound.
func (b *Binder) unbind(ctx context.Context, old Binding) error {
	defer b.locks.lock(old.Client)()
	if b.opts.Sessions.Generation(old.Client) > old.Generation {
		return nil // the newer binding has overwritten all of this one
	}
	if old.UnsavedAck > 0 {
		if _, err := b.opts.Queue.Ack(ctx, old.Client, old.Generation, old.UnsavedAck); err != nil && !fenced(err) {
			return err
		}
	}
	err := b.opts.Queue.Unbind(ctx, old.Client, old.Generation)
	rebound := false // to this server: its entry in s_c_ stays
	if fenced(err) {
		rebound, err = b.holds(ctx, old.Client)
	}
	if user := wire.UserOf(old.Client); err == nil && user != "" {
		var watchers []string
		watchers, err = b.opts.Registry.ReleaseUser(ctx, user, old.Client, old.Generation)
		b.opts.UserChanged(user, watchers)
		b.uncertainUsers.forget(old.Client)
	}
	if err == nil && !rebound {
		err = b.dropClient(ctx, b.opts.ServerID(), old.Client)
	}
	return err
}

// dropClient removes the client from the server's list. No generation fences this call. So if it is
// not known whether the store will execute it, a later beat compares the client's binding.
func (b *Binder) dropClient(ctx context.Context, server, client string) error {
	err := b.opts.Registry.DropClient(ctx, server, client)
	if queue.OutcomeUnknown(err) {
		b.opts.Uncertain(client)
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
func (b *Binder) resolveUnconfirmed() {
	for _, u := range b.unconfirmed.take(maxResolved) {
		b.opts.Pool.Go(func() {
			final := !time.Now().Before(u.ends)
			err := b.resolve(b.opts.StoreContext(), u.boundClient)
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
func (b *Binder) resolve(ctx context.Context, u boundClient) error {
	left, current, err := b.leftover(ctx, u)
	if err != nil {
		return err
	}
	if current > 0 {
		b.opts.Sessions.Supersede(u.client, current)
		b.opts.Superseded("", u.client, current)
	}
	if left.Generation == 0 {
		return nil
	}
	return b.unbind(ctx, left)
}

// leftover returns the binding that u made if no session has it, or a zero binding. It also returns
// the client's current generation.
func (b *Binder) leftover(ctx context.Context, u boundClient) (left Binding, current int64, err error) {
	defer b.locks.lock(u.client)() // excludes other binds of the client
	c, known, err := b.opts.Queue.Client(ctx, u.client)
	switch {
	case err != nil:
		return Binding{}, 0, err
	case !known || c.Server != u.server:
		err = b.dropClient(ctx, u.server, u.client)
	case !b.inUse(u.client, c.Generation):
		left = Binding{Client: u.client, Generation: c.Generation}
	}
	return left, c.Generation, err
}

// inUse returns whether the client has an open session or a pending bind of that generation.
func (b *Binder) inUse(client string, generation int64) bool {
	// In this order: a pending bind ends after its session is open.
	return b.pending.has(client, generation) || b.opts.Sessions.Generation(client) == generation
}
