package room

import (
	"context"
	"errors"
	"fmt"

	"switchboard/broker/delivery"
	"switchboard/broker/extension"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
)

// A reader returns a room, or as much of it as an operation needs.
type reader func() (*Snapshot, error)

// whole reads all of a room.
func (r *Rooms) whole(ctx context.Context, id string) reader {
	return func() (*Snapshot, error) { return r.Read(ctx, id) }
}

// change changes a room. plan returns the update for the room that read returns, nil if there is
// nothing to do, or the error of the operation. If the store refuses the update because the room
// has changed, change reads it and plans again. It returns the snapshot of the last plan.
func (r *Rooms) change(ctx context.Context, a Actor, id string, read reader, plan func(*Snapshot) (*state.Update, error)) (*Snapshot, delivery.ChannelResult, error) {
	var result delivery.ChannelResult
	s, err := kit.Retry(ctx, "room "+id, func() (*Snapshot, error) {
		s, err := read()
		if err != nil {
			return nil, err
		}
		u, err := plan(s)
		if err != nil || u == nil {
			return s, err
		}
		if result, err = r.apply(ctx, a, id, u); isStale(err) {
			return nil, kit.ErrChanged
		}
		return s, err
	})
	return s, result, err
}

// apply stores an update. If it makes the actor an owner of fields, it is bound to the actor's
// connection.
func (r *Rooms) apply(ctx context.Context, a Actor, id string, u *state.Update) (result delivery.ChannelResult, err error) {
	if err := r.due(ctx, id); err != nil {
		return result, fmt.Errorf("note that room %s changes: %w", id, err)
	}
	store := func() (err error) {
		result, err = r.host.Change(ctx, Channel(id), u, extension.ChangeOptions{})
		return err
	}
	if !ownsFields(u) {
		err = store()
	} else {
		err = a.own(ctx, id, func(c state.Connection) error {
			u.Client, u.Generation, u.Server = c.Client, c.Generation, c.Server
			return store()
		})
	}
	if err == nil {
		r.pending.add(id, !a.placed)
	}
	return result, err
}

func ownsFields(u *state.Update) bool {
	for i := range u.Ops {
		if u.Ops[i].Own == state.Own {
			return true
		}
	}
	return false
}

// isStale reports whether an update was refused because the room is not as it was read. A group
// that is full is read again, too: the new plan fails with the current values.
func isStale(err error) bool {
	refusal, ok := errors.AsType[*state.Refusal](err)
	if !ok {
		return false
	}
	switch refusal.Err.Code {
	case wire.Conflict, wire.Full, wire.NotFound:
		return true
	}
	return false
}
