package room

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

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
	return slices.ContainsFunc(u.Ops, func(op state.Op) bool { return op.Own == state.Own })
}

// isStale reports whether an update was refused because the room is not as it was read. A group
// that is full is read again, too: the new plan fails with the current values.
func isStale(err error) bool { return kit.IsRefused(err, wire.Conflict, wire.Full, wire.NotFound) }

// PatchRequest is the body of a patch. With the room it is the data of room.patch. Parts that are
// nil stay.
type PatchRequest struct {
	Room string `json:"-"`
	// Version refuses the patch unless the room has this version. Zero means any version.
	Version    int64           `json:"version,omitempty"`
	Name       *string         `json:"name,omitempty"`
	Region     *string         `json:"region,omitempty"`
	Locked     *bool           `json:"locked,omitempty"`
	AppVersion *string         `json:"app_version,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"` // null removes the data
	// Owner is the number of the member that becomes the owner.
	Owner *int `json:"owner,omitempty"`
}

// Patch changes the document of a room. Only the owner and the backend may do it. If the room does
// not have the version, the error is conflict, whose data is the room. Visibility, mode and
// capacity do not change.
func (r *Rooms) Patch(ctx context.Context, a Actor, q PatchRequest) (View, error) {
	var owner []int // that is named
	if q.Owner != nil {
		owner = append(owner, *q.Owner)
	}
	return r.edit(ctx, a, q.Room, q.Version, func(s *Snapshot, doc *Room, u *state.Update) error {
		kit.Patch(&doc.Name, q.Name)
		kit.Patch(&doc.Region, q.Region)
		kit.Patch(&doc.AppVersion, q.AppVersion)
		kit.Patch(&doc.Locked, q.Locked)
		if q.Data != nil {
			doc.Data = q.Data
		}
		if q.Owner != nil {
			return s.nameOwner(*q.Owner, u)
		}
		return nil
	}, owner...)
}

// Lock locks or unlocks a room: a locked room takes no new members. Only the owner and the backend
// may do it.
func (r *Rooms) Lock(ctx context.Context, a Actor, id string, locked bool) (View, error) {
	return r.Patch(ctx, a, PatchRequest{Room: id, Locked: &locked})
}

// Start begins the game of a waiting room. Nothing happens if it is playing. If it has finished,
// the error is conflict. Only the owner and the backend may do it.
func (r *Rooms) Start(ctx context.Context, a Actor, id string) (View, error) {
	return r.edit(ctx, a, id, 0, func(s *Snapshot, doc *Room, _ *state.Update) error {
		switch doc.Status {
		case Finished:
			return wire.Errorf(wire.Conflict, "room %s: it has finished", id).With(s.view(a))
		case Waiting:
			doc.Status, doc.Started = Playing, r.host.Now().UnixMilli()
		}
		return nil
	})
}

// Finish ends the game of a room. Nothing happens if it has finished. Only the owner and the
// backend may do it.
func (r *Rooms) Finish(ctx context.Context, a Actor, id string) (View, error) {
	return r.edit(ctx, a, id, 0, func(_ *Snapshot, doc *Room, _ *state.Update) error {
		if doc.Status != Finished {
			doc.Status, doc.Finished = Finished, r.host.Now().UnixMilli()
		}
		return nil
	})
}

// edit changes the document of a room under its version. A change may add operations to the update.
// Nothing is written if nothing changes. The change needs the members with the numbers in full.
func (r *Rooms) edit(ctx context.Context, a Actor, id string, version int64, change func(*Snapshot, *Room, *state.Update) error, numbers ...int) (View, error) {
	var doc Room
	s, result, err := r.change(ctx, a, id, r.asOwner(ctx, a, id, numbers...), func(s *Snapshot) (*state.Update, error) {
		if err := s.requireOwner(a); err != nil {
			return nil, err
		}
		if version != 0 && version != s.Version {
			return nil, wire.Errorf(wire.Conflict, "room %s: its version is %d", id, s.Version).With(s.view(a))
		}
		u := a.update()
		u.If = s.withOwner(a, []state.Condition{kit.Same(fieldRoom, s.Version)})
		doc = s.Room
		if err := change(s, &doc, u); err != nil {
			return nil, err
		}
		if err := doc.check(); err != nil {
			return nil, err
		}
		value := kit.JSON(doc)
		if len(u.Ops) == 0 && string(value) == string(kit.JSON(s.Room)) {
			return nil, nil
		}
		u.Ops = append(u.Ops, state.Op{Field: fieldRoom, Kind: state.Set, Value: value})
		return u, nil
	})
	if err != nil {
		return View{}, err
	}
	if s.Room = doc; result.ID != 0 {
		s.Version = result.ID
		s.Owner = s.findOwner()
	}
	return s.view(a), nil
}

// asOwner reads a room for an operation of its owner.
func (r *Rooms) asOwner(ctx context.Context, a Actor, id string, numbers ...int) reader {
	return func() (*Snapshot, error) {
		return r.readAs(ctx, a, id, func(s *Snapshot) error { return r.refuseOthers(ctx, s, a) }, numbers...)
	}
}

// nameOwner adds to u that the member with a number is named as the owner.
func (s *Snapshot) nameOwner(n int, u *state.Update) error {
	m := s.member(n)
	if m == nil || m.Reserved {
		return wire.Errorf(wire.NotFound, "room %s: there is no member %d", s.ID, n)
	}
	if m.User == s.OwnerUser {
		return nil
	}
	if n != s.Owner {
		u.If = append(u.If, kit.Same(memberField(n), m.id))
	}
	u.Ops = append(u.Ops, kit.Set(fieldOwner, m.User))
	s.OwnerUser = m.User
	return nil
}
