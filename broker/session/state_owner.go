package session

import (
	"context"
	"errors"

	"switchboard/internal/slots"
	"switchboard/internal/wire"
	"switchboard/queue"
)

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
	ow.storeOrRetry(ow.storeContext(), o)
}

// endSubscribe ends what beginSubscribe began. owns says that the client owns fields. The pool's
// workers call it.
func (ow *owners) endSubscribe(o *ownership, owns bool) {
	o.mu.Lock()
	o.subscribes--
	o.owns = o.owns || owns
	o.mu.Unlock()
	ow.storeOrRetry(ow.storeContext(), o)
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
	ow.opts.Pool.Go(func() { ow.storeOrRetry(ow.storeContext(), o) })
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
	defer ow.binder.Lock(o.client)()
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

// settled returns whether nothing has failed.
func (ow *owners) settled() bool {
	ow.mu.Lock()
	defer ow.mu.Unlock()
	return len(ow.failed) == 0
}

// storeBack stores that the client is connected.
func (ow *owners) storeBack(ctx context.Context, o *ownership) error {
	defer ow.binder.Lock(o.client)()
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

// OwnersAway is called with clients whose fields of a channel are away. If such a client is
// connected to this server and sees the state, then the state that its subscribe looked at was
// older than these fields, or than a change of theirs. OwnersAway stores that the client is back.
func (m *Manager) OwnersAway(channel string, clients []string) {
	for _, client := range clients {
		if s := m.clients.get(client); s != nil {
			s.shard.loop.Post(func() {
				if s.state == open && s.stateSubscription(channel) != nil {
					s.storeBack(channel)
				}
			})
		}
	}
}

// checkBack stores that the client is back if it owns fields of which its subscribe did not know.
// Fields of which this server learns later are reported by OwnersAway.
func (s *Session) checkBack(channel string) {
	if o := s.ownership(channel); o != nil && o.isOwner() {
		return
	}
	if s.state == open && s.m.opts.Snapshots.Owns(channel, s.client) {
		s.storeBack(channel)
	}
}

// storeBack has the pool store that the client is back. If that fails, RestoreOwners tries again.
func (s *Session) storeBack(channel string) {
	o := s.ensureOwnership(channel)
	o.beginSubscribe()
	s.m.opts.Pool.Go(func() {
		if err := s.m.owners.storeBack(s.m.storeContext(), o); err != nil {
			s.m.opts.Logger.Warn().Err(err).Msg("the return of an owner of fields is not stored")
		}
		s.m.owners.endSubscribe(o, true)
		s.shard.loop.Post(func() { s.dropUnusedOwnership(o) })
	})
}
