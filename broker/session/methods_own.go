package session

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// Own calls update, which makes this connection an owner of fields of a channel by one
// state.Update with the given connection. The client needs no subscription to the channel. The
// fields are away from the end of the session on, until the client subscribes to the channel with
// its state, or makes another such update. They end if their grace passes before that. If the
// client unsubscribes from the channel, they end at once.
//
// update runs at most once, and not at all if the session has ended or the channel cannot be bound
// to this server. It must return the error of the store unchanged or wrapped: an error that is not
// a *wire.Error means that the store may still execute the update. Own returns the error of update
// in a *ChannelError.
//
// Own must not be called on a loop. It may be called while the method runs, not later.
func (c Caller) Own(ctx context.Context, channel string, update func(state.Connection) error) error {
	s := c.session
	if s == nil {
		return wire.Errorf(wire.Forbidden, "channel %s: only a connection can own fields", channel)
	}
	// If this server dies, the janitor finds the channel by its binding. A subscription would have
	// bound it before.
	pos, err := s.m.opts.Hub.Acquire(ctx, channel, nil)
	if err != nil {
		return fmt.Errorf("bind channel %s: %w", channel, err)
	}
	defer s.m.opts.Hub.Release(pos.Channel)
	o, err := s.beginOwn(ctx, channel)
	if err != nil {
		return err
	}
	defer s.shard.loop.Post(func() { s.dropUnusedOwnership(o) })
	if err := s.m.owners.prepareUpdate(ctx, o); err != nil {
		return err
	}
	err = update(state.Connection{Client: c.Client, Generation: c.Generation, Server: s.m.opts.ServerID()})
	s.m.owners.endUpdate(o, err)
	if err == nil {
		return nil
	}
	return inChannel(channel, err)
}

// inChannel returns err as a *ChannelError.
func inChannel(channel string, err error) error {
	if of, ok := errors.AsType[*ChannelError](err); ok && of.Channel == channel {
		return err
	}
	return &ChannelError{channel, err}
}

// beginOwn returns the ownership of a channel, for prepareUpdate. It waits for the loop. If ctx
// ends before the loop has begun, nothing is noted.
func (s *Session) beginOwn(ctx context.Context, channel string) (o *ownership, err error) {
	var claimed atomic.Bool // by the loop, or by the end of ctx
	done := make(chan struct{})
	s.shard.loop.Post(func() {
		if claimed.CompareAndSwap(false, true) {
			o, err = s.noteOwn(channel)
			close(done)
		}
	})
	select {
	case <-done:
	case <-ctx.Done():
		if claimed.CompareAndSwap(false, true) {
			return nil, ctx.Err()
		}
		<-done
	}
	return o, err
}

// noteOwn notes in the ownership of a channel that an update follows. It runs on the loop.
func (s *Session) noteOwn(channel string) (*ownership, error) {
	if s.state != open {
		return nil, errSessionEnded
	}
	if u := s.stateUse(); u != nil && len(u.owned) >= s.m.opts.Limits.Channels && s.ownership(channel) == nil {
		s.m.opts.Metrics.Refused("channels")
		return nil, tooManyChannels(&s.m.opts.Limits, channel)
	}
	o := s.ensureOwnership(channel)
	o.beginSubscribe() // holds o until prepareUpdate, and lets the end of a subscription be stored
	return o, nil
}

var errSessionEnded = wire.Errorf(wire.Unavailable, "the connection has ended")

// prepareUpdate stores the end of an earlier subscription, which would otherwise end the fields of
// the update. Then it begins the update, unless the session has ended. If the error is nil,
// endUpdate must follow.
func (ow *owners) prepareUpdate(ctx context.Context, o *ownership) error {
	err := ow.store(ctx, o)
	if err == nil && !o.beginUpdateUnlessEnded() {
		err = errSessionEnded
	}
	ow.endSubscribe(o, false)
	return err
}

// beginUpdateUnlessEnded is beginUpdate, and returns true, unless the session has ended.
func (o *ownership) beginUpdateUnlessEnded() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.ended {
		o.updates++
	}
	return !o.ended
}
