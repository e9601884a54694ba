package session

import (
	"context"
	"errors"
	"sync"

	"switchboard/internal/wire"
	"switchboard/queue"
)

// failedUnbinds are bindings that could not be ended. The pool's workers add them, and the next
// tick tries again.
type failedUnbinds struct {
	mu   sync.Mutex // guards the field below
	list []binding
}

func (f *failedUnbinds) add(old binding) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, old)
}

// take empties the list and returns it.
func (f *failedUnbinds) take() []binding {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.list
	f.list = nil
	return list
}

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
