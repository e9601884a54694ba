package scene

import (
	"context"
	"time"

	"switchboard/broker/session"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/queue"
)

const placeGroup = "pc/"

// ownGroup is the prefix of the fields that a player writes.
const ownGroup = "a/"

// ownFields is the prefix of the fields that the player of an avatar writes.
func ownFields(avatar string) string { return ownGroup + avatar + "/" }

func placeField(avatar string) string { return placeGroup + avatar }

// place is the value of pc/{avatar}.
type place struct {
	Name   string `json:"name"`
	Figure string `json:"figure,omitempty"`
	// Offline is set if no client has entered the scene with the avatar: a backend has put it there.
	// Once a client has, the field is away instead.
	Offline bool `json:"offline,omitempty"`
}

// storedPlace is a place as its scene has it. A nil *storedPlace is none.
type storedPlace struct {
	*state.Field
	value place
}

// leased reports whether the transfer into the place is not confirmed.
func (p *storedPlace) leased() bool { return p.Lease != 0 }

// online reports whether a client with the avatar is connected.
func (p *storedPlace) online() bool { return len(p.Owners) > 0 && p.Away == 0 }

func parsePlace(f *state.Field) (*storedPlace, error) {
	v, err := decode[place](f)
	if v == nil || err != nil {
		return nil, err
	}
	return &storedPlace{f, v.value}, nil
}

// readPlace reads a scene and an avatar's place there. Both may be nil.
func (s *Scenes) readPlace(ctx context.Context, scene, avatar string) (*storedScene, *storedPlace, error) {
	if err := checkID("scene", scene); err != nil {
		return nil, nil, err
	}
	var p *storedPlace
	read := queue.StateRead{Channel: sceneChannel(scene), Fields: []string{sceneField, pendingField, placeField(avatar)}}
	c, err := kit.ReadOne(ctx, s.host, read, func(channel string, fields []queue.NamedField) (c *storedScene, err error) {
		c, err = parseScene(channel, fields)
		for _, f := range fields {
			if f.Name == placeField(avatar) && err == nil {
				p, err = parsePlace(f.Field)
			}
		}
		return c, err
	})
	return c, p, err
}

// placing is a write of an avatar's place.
type placing struct {
	scene string
	value place
	by    *session.Caller // becomes an owner. Nil keeps the owners
	lease time.Duration   // 0 confirms the place
	max   int             // most places in the scene; 0 for no limit
	only  state.Condition
}

// newPlacing returns the write of an avatar's place with a lease. old is the place that it
// replaces.
func (s *Scenes) newPlacing(a *storedAvatar, scene string, old *storedPlace, by *session.Caller) placing {
	owned := by != nil || old != nil && len(old.Owners) > 0
	return placing{
		scene: scene, by: by, lease: s.opts.Lease,
		value: place{Name: a.value.Name, Figure: a.value.Figure, Offline: !owned},
	}
}

// confirm makes p the write that confirms the place with an id, and keeps its owners.
func (p *placing) confirm(avatar string, id int64) {
	p.by, p.lease, p.max, p.only = nil, 0, 0, version(placeField(avatar), id)
}

// writePlace sets an avatar's place, and returns its id.
func (s *Scenes) writePlace(ctx context.Context, a *storedAvatar, p placing) (int64, error) {
	op := set(placeField(a.key), p.value)
	op.Holder, op.TTL, op.GroupMax = state.UserHolder(a.value.User), p.lease, p.max
	return s.ownPlace(ctx, p, op)
}

// ownPlace makes a change of a place, by a connection or by the backend.
func (s *Scenes) ownPlace(ctx context.Context, p placing, op state.Op) (id int64, err error) {
	u := &state.Update{Ops: []state.Op{op}, If: []state.Condition{p.only}}
	if p.by == nil {
		return s.change(ctx, sceneChannel(p.scene), u)
	}
	u.Ops[0].Own, u.Ops[0].Grace = state.Own, state.GraceNever
	err = p.by.Own(ctx, sceneChannel(p.scene), func(c state.Connection) error {
		u.Client, u.Generation, u.Server = c.Client, c.Generation, c.Server
		id, err = s.write(ctx, sceneChannel(p.scene), u)
		return err
	})
	return id, changed(err)
}

// settle makes the places of an avatar agree with its record, and returns the avatar. It
// finishes a transfer that stopped after any step. Several may run at the same time.
func (s *Scenes) settle(ctx context.Context, id string) (*storedAvatar, error) {
	return kit.Retry(ctx, "avatar "+id, func() (*storedAvatar, error) {
		a, err := s.existingAvatar(ctx, id)
		if err != nil {
			return nil, err
		}
		if a.value.Scene != "" {
			if a, err = s.ensurePlace(ctx, a, nil); err != nil {
				return nil, err
			}
		}
		for scene, field := range a.left {
			if err := s.leave(ctx, a, scene, field); err != nil {
				return nil, err
			}
		}
		return a, nil
	})
}

// ensurePlace makes the avatar listed in the scene of its record, and returns the avatar as it
// is then. If by is not nil, its connection becomes an owner of the place. If the scene is
// deleted, the avatar is in no scene.
func (s *Scenes) ensurePlace(ctx context.Context, a *storedAvatar, by *session.Caller) (*storedAvatar, error) {
	scene := a.value.Scene
	c, p, err := s.readPlace(ctx, scene, a.key)
	if err != nil {
		return nil, err
	}
	if c == nil || c.value.Status == Deleted {
		to := a.value
		to.Scene = ""
		if err := s.move(ctx, a, to); err != nil {
			return nil, err
		}
		return nil, kit.ErrChanged // reads what the move has noted
	}
	place := s.newPlacing(a, scene, p, by)
	if p == nil {
		place.only = state.Condition{Field: placeField(a.key), Kind: state.IsAbsent}
		if _, err = s.writePlace(ctx, a, place); err == nil {
			err = kit.ErrChanged // reads the record again, and then confirms the place
		}
		return nil, err
	}
	again, err := s.readAvatar(ctx, a.key) // after the place
	if err != nil {
		return nil, err
	}
	if !again.in(scene) {
		return nil, kit.ErrChanged
	}
	place = s.newPlacing(again, scene, p, by)
	place.lease, place.only = 0, version(placeField(a.key), p.ID)
	switch same := !p.leased() && p.agrees(again, place.value); {
	case same && by == nil:
	case same: // only the owner changes
		_, err = s.ownPlace(ctx, place, state.Op{Field: placeField(a.key), Kind: state.Touch})
	default:
		_, err = s.writePlace(ctx, again, place)
	}
	return again, err
}

// agrees reports whether the place shows the avatar as it is.
func (p *storedPlace) agrees(a *storedAvatar, want place) bool {
	return p.value == want && p.Holder == state.UserHolder(a.value.User)
}

// leave deletes an avatar's place in a scene that its record does not name. field is the id of the
// field $$left/{scene}, which it deletes, too; 0 means that there is none.
func (s *Scenes) leave(ctx context.Context, a *storedAvatar, scene string, field int64) error {
	_, p, err := s.readPlace(ctx, scene, a.key)
	if err != nil {
		return err
	}
	if p != nil {
		again, err := s.readAvatar(ctx, a.key) // after the place
		if err != nil {
			return err
		}
		if err := s.fault("leaving"); err != nil {
			return err
		}
		if !again.in(scene) {
			u := &state.Update{Ops: []state.Op{remove(placeField(a.key))}, If: []state.Condition{version(placeField(a.key), p.ID)}}
			if _, err := s.change(ctx, sceneChannel(scene), u); err != nil {
				return inChannel("leave", sceneChannel(scene), err)
			}
		}
	}
	if err := s.fault("leave"); err != nil || field == 0 {
		return err
	}
	u := &state.Update{Ops: []state.Op{remove(leftGroup + scene)}, If: []state.Condition{version(leftGroup+scene, field)}}
	_, err = s.change(ctx, avatarChannel(a.key), u)
	return err
}

// in reports whether the avatar's record names the scene. a may be nil.
func (a *storedAvatar) in(scene string) bool { return a != nil && a.value.Scene == scene }

// full is the error of a scene without a free place.
func full(scene string, capacity int) error {
	return &wire.DetailedError{
		Err: wire.Errorf(wire.Full, "scene %s has %d avatars, that is all", scene, capacity), Data: map[string]any{"max": capacity},
	}
}
