package session

import (
	"context"
	"errors"
	"sync"

	"switchboard/internal/slots"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// ownership exists while a client may own fields of a channel through one session. When the
// subscription or the session ends, a step in the store ends the ownership there. Until that step
// is stored, the ownership holds the channel, so that the server stays bound to it.
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
	unsubscribed bool       // the subscription has ended, and the step for that is not stored
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

// takeDue returns the kind of the step that must be stored next. ok is false if there is none. It
// is also false during an update, because the store must receive the step after the update. takeDue
// forgets the end of a subscription that owned nothing.
func (o *ownership) takeDue() (kind queue.StepKind, ok bool) {
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

// owners stores the steps of all ownerships. The loops and the pool's workers use it.
type owners struct {
	opts   *Options
	binder *binder // its locks serialize the steps of a client

	mu     sync.Mutex // guards the field below
	failed []*ownership
}

// endUpdate ends what beginUpdate began, with the error of the update. It then stores what had to
// wait for the update. The pool's workers call it.
func (ow *owners) endUpdate(o *ownership, err error) {
	if errors.Is(err, queue.ErrNotReplicated) {
		err = nil // the update is stored
	}
	_, refused := errors.AsType[*wire.Error](err)
	uncertain := !refused && queue.OutcomeUnknown(err)
	o.mu.Lock()
	o.updates--
	o.owns = o.owns || err == nil || uncertain
	o.uncertain = o.uncertain || uncertain
	o.mu.Unlock()
	ow.storeOrRetry(ow.binder.storeContext(), o)
}

// endSubscribe ends what beginSubscribe began. owns says that the client owns fields. The pool's
// workers call it.
func (ow *owners) endSubscribe(o *ownership, owns bool) {
	o.mu.Lock()
	o.subscribes--
	o.owns = o.owns || owns
	o.mu.Unlock()
	ow.storeOrRetry(ow.binder.storeContext(), o)
}

// sessionEnded has the pool store the end of a session.
func (ow *owners) sessionEnded(o *ownership) {
	o.mu.Lock()
	o.ended = true
	o.mu.Unlock()
	ow.storeLater(o)
}

// storeLater has the pool store what is due.
func (ow *owners) storeLater(o *ownership) {
	ow.opts.Pool.Go(func() { ow.storeOrRetry(ow.binder.storeContext(), o) })
}

// storeOrRetry stores what is due. After a failure the next tick tries again.
func (ow *owners) storeOrRetry(ctx context.Context, o *ownership) {
	if err := ow.store(ctx, o); err != nil {
		ow.opts.Logger.Warn().Err(err).Msg("the end of the ownership of fields is not stored; the next tick tries again")
		ow.mu.Lock()
		defer ow.mu.Unlock()
		if !o.failed {
			o.failed = true
			ow.failed = append(ow.failed, o)
		}
	}
}

// store stores what is due. ErrStale means that the client is connected elsewhere.
func (ow *owners) store(ctx context.Context, o *ownership) error {
	if _, due := o.takeDue(); due {
		if err := ow.storeDue(ctx, o); err != nil {
			return err
		}
		o.session.shard.loop.Post(func() { o.session.dropUnusedOwnership(o) })
	}
	o.releaseEnded()
	return nil
}

func (ow *owners) storeDue(ctx context.Context, o *ownership) error {
	defer ow.binder.locks.lock(o.client)()
	for kind, due := o.takeDue(); due; kind, due = o.takeDue() {
		step := o.step(kind, ow.opts.ServerID())
		if err := ow.opts.StepStates(ctx, []queue.StateStep{step})[0].Err; err != nil && !errors.Is(err, queue.ErrStale) {
			return err
		}
		o.stored(kind)
	}
	return nil
}

// retry tries again to store what was not stored.
func (ow *owners) retry() {
	ow.mu.Lock()
	list := ow.failed
	ow.failed = nil
	for _, o := range list {
		o.failed = false
	}
	ow.mu.Unlock()
	for _, o := range list {
		ow.storeLater(o)
	}
}

// storeBack stores that the client is connected.
func (ow *owners) storeBack(ctx context.Context, o *ownership) error {
	defer ow.binder.locks.lock(o.client)()
	step := o.step(queue.OwnerBack, ow.opts.ServerID())
	err := ow.opts.StepStates(ctx, []queue.StateStep{step})[0].Err
	if errors.Is(err, queue.ErrStale) {
		return nil // either a newer connection ends this one, or this server was declared dead: see RestoreOwners
	}
	return err
}

// maxSteps is the most steps of one call of Options.StepStates.
const maxSteps = 256

// RestoreOwners stores again that the owners of fields are connected, for the channels in the
// slots, with the server's current id. It is called after the store failed, or after the server was
// declared dead.
func (m *Manager) RestoreOwners(ctx context.Context, of *slots.Set) error {
	found := make([][]queue.StateStep, len(m.shards))
	server := m.opts.ServerID()
	m.eachShard(func(sh *shard) {
		for _, u := range sh.states {
			for _, o := range u.owned {
				if of.HasName(o.channel) && o.isOwner() {
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
