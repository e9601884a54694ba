package room

import (
	"context"
	"encoding/json"

	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
)

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
			return &wire.DetailedError{Err: wire.Errorf(wire.Conflict, "room %s: it has finished", id), Data: s.view(a)}
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
			return nil, &wire.DetailedError{
				Err: wire.Errorf(wire.Conflict, "room %s: its version is %d", id, s.Version), Data: s.view(a),
			}
		}
		u := a.update()
		u.If = s.withOwner(a, []state.Condition{sameField(fieldRoom, s.Version)})
		doc = s.Room
		if err := change(s, &doc, u); err != nil {
			return nil, err
		}
		if err := doc.check(); err != nil {
			return nil, err
		}
		value := mustJSON(doc)
		if len(u.Ops) == 0 && string(value) == string(mustJSON(s.Room)) {
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
		u.If = append(u.If, sameField(memberField(n), m.id))
	}
	u.Ops = append(u.Ops, state.Op{Field: fieldOwner, Kind: state.Set, Value: mustJSON(m.User)})
	s.OwnerUser = m.User
	return nil
}
