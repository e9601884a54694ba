package session

import (
	"context"
	"errors"
	"sync"

	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// ownership says that a client may own fields of a channel, through one session. The store must
// learn when the subscription or the session ends. Until then the ownership holds the channel, so
// that the server stays bound to it.
type ownership struct {
	session    *Session
	channel    string
	client     string
	generation int64
	release    func() // gives up the hold of the channel

	mu           sync.Mutex // guards the fields below
	updates      int        // updates under way that make the client an owner
	subscribes   int        // subscribes under way
	owns         bool       // the client may own fields
	uncertain    bool       // an update failed that the store may still execute
	unsubscribed bool       // the end of the subscription is not stored
	ended        bool       // the session has ended
	released     bool

	failed bool // in owners.failed; guarded by owners.mu
}

// beginUpdate notes an update that makes the client an owner. owners.endUpdate must follow.
func (o *ownership) beginUpdate() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.updates++
}

// beginSubscribe notes a subscribe with the state. owners.endSubscribe must follow.
func (o *ownership) beginSubscribe() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.subscribes++
	o.unsubscribed = o.unsubscribed && (o.owns || o.updates > 0) // otherwise an earlier subscription owned nothing
}

// unsubscribe notes that the subscription has ended. It does nothing if the client owns nothing.
func (o *ownership) unsubscribe() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unsubscribed = o.owns || o.updates+o.subscribes > 0
}

// isUnused reports whether the client owns nothing, and nothing is under way that may change that.
func (o *ownership) isUnused() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.updates+o.subscribes == 0 && !o.owns && !o.unsubscribed
}

// isOwner reports whether the client may own fields.
func (o *ownership) isOwner() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.owns
}

// next returns the step that must be stored next. ok is false if there is none, or if it must wait
// for an update under way: the store must receive it after that.
func (o *ownership) next() (kind queue.StepKind, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.updates > 0:
	case o.owns && o.unsubscribed:
		return queue.OwnerUnsubscribed, true
	case o.owns && o.ended:
		return queue.OwnerEnded, true
	case o.subscribes == 0: // a subscribe under way may still find that the client owns fields
		o.unsubscribed = false
	}
	return 0, false
}

// stored notes that a step was stored.
func (o *ownership) stored(kind queue.StepKind) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.unsubscribed = false; kind == queue.OwnerEnded {
		o.owns = false // the generation has ended: the store refuses what it still executes
	} else {
		o.owns = o.uncertain
	}
}

// releaseEnded gives up the channel if the session has ended and all is stored.
func (o *ownership) releaseEnded() {
	o.mu.Lock()
	release := o.ended && o.updates+o.subscribes == 0 && !o.owns && !o.released
	o.released = o.released || release
	o.mu.Unlock()
	if release {
		o.release()
	}
}

// step returns a step about the connection.
func (o *ownership) step(kind queue.StepKind, server string) queue.StateStep {
	return queue.StateStep{
		Channel: o.channel, Kind: kind,
		Conn: state.Connection{Client: o.client, Generation: o.generation, Server: server},
	}
}

// owners stores when the ownership of fields ends. The loops and the pool's workers use it.
type owners struct {
	opts   *Options
	binder *binder // its locks serialize the steps of a client

	mu     sync.Mutex // guards the field below
	failed []*ownership
}

// endUpdate ends what beginUpdate began, with the error of the update. It then stores what had to
// wait for the update. The pool's workers call it.
func (w *owners) endUpdate(o *ownership, err error) {
	_, refused := errors.AsType[*wire.Error](err)
	uncertain := !refused && queue.OutcomeUnknown(err)
	o.mu.Lock()
	o.updates--
	o.owns = o.owns || err == nil || uncertain
	o.uncertain = o.uncertain || uncertain
	o.mu.Unlock()
	w.storeOrRetry(w.binder.storeContext(), o)
}

// endSubscribe ends what beginSubscribe began. owns says that the client owns fields. The pool's
// workers call it.
func (w *owners) endSubscribe(o *ownership, owns bool) {
	o.mu.Lock()
	o.subscribes--
	o.owns = o.owns || owns
	o.mu.Unlock()
	w.storeOrRetry(w.binder.storeContext(), o)
}

// sessionEnded has the pool store the end of a session.
func (w *owners) sessionEnded(o *ownership) {
	o.mu.Lock()
	o.ended = true
	o.mu.Unlock()
	w.storeLater(o)
}

// storeLater has the pool store what is due.
func (w *owners) storeLater(o *ownership) {
	w.opts.Pool.Go(func() { w.storeOrRetry(w.binder.storeContext(), o) })
}

// storeOrRetry stores what is due. After a failure the next tick tries again.
func (w *owners) storeOrRetry(ctx context.Context, o *ownership) {
	if err := w.store(ctx, o); err != nil {
		w.opts.Logger.Warn().Err(err).Msg("the end of the ownership of fields is not stored; the next tick tries again")
		w.mu.Lock()
		defer w.mu.Unlock()
		if !o.failed {
			o.failed = true
			w.failed = append(w.failed, o)
		}
	}
}

// store stores what is due. ErrStale means that the client is connected elsewhere.
func (w *owners) store(ctx context.Context, o *ownership) error {
	if _, due := o.next(); due {
		if err := w.storeDue(ctx, o); err != nil {
			return err
		}
		o.session.shard.loop.Post(func() { o.session.dropUnusedOwnership(o) })
	}
	o.releaseEnded()
	return nil
}

func (w *owners) storeDue(ctx context.Context, o *ownership) error {
	defer w.binder.locks.lock(o.client)()
	for kind, due := o.next(); due; kind, due = o.next() {
		step := o.step(kind, w.opts.ServerID())
		if err := w.opts.StepStates(ctx, []queue.StateStep{step})[0].Err; err != nil && !errors.Is(err, queue.ErrStale) {
			return err
		}
		o.stored(kind)
	}
	return nil
}

// retry tries again to store what was not stored.
func (w *owners) retry() {
	w.mu.Lock()
	list := w.failed
	w.failed = nil
	for _, o := range list {
		o.failed = false
	}
	w.mu.Unlock()
	for _, o := range list {
		w.storeLater(o)
	}
}

// back stores that the client is connected.
func (w *owners) back(ctx context.Context, o *ownership) error {
	defer w.binder.locks.lock(o.client)()
	step := o.step(queue.OwnerBack, w.opts.ServerID())
	err := w.opts.StepStates(ctx, []queue.StateStep{step})[0].Err
	if errors.Is(err, queue.ErrStale) {
		return nil // another connection of the client ends this one, or RestoreOwners tries again
	}
	return err
}

// maxSteps is the most steps of one call of Options.StepStates.
const maxSteps = 256

// RestoreOwners stores, under the server's current id, that the clients are connected that own
// fields through sessions of this server. It is called after the store failed, or after the server
// was declared dead.
func (m *Manager) RestoreOwners(ctx context.Context) error {
	found := make([][]queue.StateStep, len(m.shards))
	server := m.opts.ServerID()
	m.eachShard(func(sh *shard) {
		for _, u := range sh.states {
			for _, o := range u.owned {
				if o.isOwner() {
					found[sh.loop.Index] = append(found[sh.loop.Index], o.step(queue.OwnerBack, server))
				}
			}
		}
	})
	for _, steps := range found {
		for len(steps) > 0 {
			n := min(len(steps), maxSteps)
			for _, outcome := range m.opts.StepStates(ctx, steps[:n]) {
				if outcome.Err != nil && !errors.Is(outcome.Err, queue.ErrStale) {
					return outcome.Err
				}
			}
			steps = steps[n:]
		}
	}
	return nil
}
