package scene

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"switchboard/broker/session"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/queue"
)

// Transfer says which avatar goes where.
type Transfer struct {
	Avatar string `json:"avatar"`
	Scene  string `json:"scene"`
	// From is the scene that the avatar must be in, "" for none. Nil means any.
	From *string `json:"from"`
	// By is the connection of the player, which becomes an owner of the place. Nil means the backend,
	// and the avatar is listed as offline until its player enters.
	By *session.Caller `json:"-"`

	enter bool
}

// Enter brings an avatar into a scene, or back into it: the connection owns the place from then on.
// It is a Conflict if the avatar is in another scene.
func (s *Scenes) Enter(ctx context.Context, t Transfer) (*Avatar, error) {
	t.enter = true
	return s.Transfer(ctx, t)
}

// Transfer brings an avatar into a scene, from wherever it is. If it is there already, Transfer
// does what Enter does.
func (s *Scenes) Transfer(ctx context.Context, t Transfer) (*Avatar, error) {
	if err := cmp.Or(checkID("scene", t.Scene), checkID("avatar", t.Avatar)); err != nil {
		return nil, err
	}
	a, err := kit.Retry(ctx, "avatar "+t.Avatar, func() (*storedAvatar, error) { return s.transfer(ctx, &t) })
	if err != nil {
		return nil, err
	}
	return s.list(ctx, a), nil
}

// transfer makes the four steps of a transfer, see the comment of the package.
func (s *Scenes) transfer(ctx context.Context, t *Transfer) (*storedAvatar, error) {
	a, err := s.avatars.Find(ctx, t.Avatar)
	if err != nil {
		return nil, err
	}
	if err := s.checkTransfer(a, t); err != nil {
		return nil, err
	}
	if a.Value.Scene == t.Scene {
		return s.stay(ctx, a, t)
	}
	place, taken, err := s.take(ctx, a, t)
	if err == nil {
		err = s.fault("take")
	}
	if err != nil {
		return nil, err
	}
	from, to := a.Value.Scene, a.Value
	to.Scene = t.Scene
	if err := s.move(ctx, a, to); err != nil {
		return nil, err
	}
	if err := s.fault("move"); err != nil {
		return nil, err
	}
	place.confirm(a.key, taken)
	_, err = s.writePlace(ctx, a, place)
	if err == nil {
		err = s.fault("confirm")
	}
	switch {
	case errors.Is(err, kit.ErrChanged):
		return s.afterLoss(ctx, t)
	case err != nil:
		return nil, err
	case from == "" && len(a.left) == 0:
		return a, nil
	}
	return s.settle(ctx, a.key)
}

// checkTransfer returns an error unless the avatar may be transferred. It may not exist.
func (s *Scenes) checkTransfer(a *storedAvatar, t *Transfer) error {
	if !a.Exists() {
		return s.avatars.NotFound(t.Avatar)
	}
	if t.By != nil {
		if err := s.checkOwner(a, &t.By.User); err != nil {
			return err
		}
	}
	switch in := a.Value.Scene; {
	case a.Value.Status == Deleted:
		return s.avatars.NotFound(t.Avatar)
	case t.enter && in != "" && in != t.Scene, t.From != nil && in != *t.From:
		return wire.Errorf(wire.Conflict, "avatar %s is in the scene %q", a.key, in).With(a.show())
	}
	return nil
}

// stay brings an avatar back into the scene that it is in, which may be closed.
func (s *Scenes) stay(ctx context.Context, a *storedAvatar, t *Transfer) (*storedAvatar, error) {
	if _, err := s.ensurePlace(ctx, a, t.By); err != nil {
		return nil, err
	}
	if len(a.left) == 0 {
		return a, nil
	}
	return s.settle(ctx, a.key)
}

// afterLoss goes on after the move of a record whose place was lost meanwhile: its lease has ended,
// or another transfer has moved the avatar on.
func (s *Scenes) afterLoss(ctx context.Context, t *Transfer) (*storedAvatar, error) {
	a, err := s.settle(ctx, t.Avatar)
	if err != nil {
		return nil, err
	}
	if !a.in(t.Scene) {
		return nil, wire.Errorf(wire.Conflict, "avatar %s was moved on to the scene %q", a.key, a.Value.Scene).With(a.show())
	}
	return s.stay(ctx, a, t)
}

// take takes a place with a lease in an open scene, and returns its id. It replaces a place of the
// avatar that another transfer has taken or not left yet.
func (s *Scenes) take(ctx context.Context, a *storedAvatar, t *Transfer) (p placing, id int64, err error) {
	c, old, err := s.readPlace(ctx, t.Scene, a.key)
	switch {
	case err != nil:
		return p, 0, err
	case !c.Exists() || c.Value.Status == Deleted:
		return p, 0, s.scenes.NotFound(t.Scene)
	case c.Value.Status == Closed:
		return p, 0, wire.Errorf(wire.Locked, "scene %s is closed", t.Scene)
	}
	p = s.newPlacing(a, t.Scene, old, t.By)
	p.max, p.only = s.opts.Capacity, kit.Same(sceneField, c.ID)
	id, err = s.writePlace(ctx, a, p)
	if kit.IsRefused(err, wire.Full) {
		err = full(t.Scene, s.opts.Capacity)
	}
	return p, id, err
}

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
	p := &storedPlace{Field: f}
	return p, json.Unmarshal(f.Value, &p.value)
}

// readPlace reads a scene, which may not exist, and an avatar's place there, which may be nil.
func (s *Scenes) readPlace(ctx context.Context, scene, avatar string) (c *storedScene, p *storedPlace, err error) {
	if err := checkID("scene", scene); err != nil {
		return nil, nil, err
	}
	page, err := kit.ReadState(ctx, s.store, queue.StateRead{
		Channel: sceneChannel(scene), Fields: []string{sceneField, pendingField, placeField(avatar)},
	})
	if err != nil {
		return nil, nil, err
	}
	for _, f := range page.Fields {
		if f.Name == placeField(avatar) {
			if p, err = parsePlace(f.Field); err != nil {
				return nil, nil, fmt.Errorf("read %s: %w", sceneChannel(scene), err)
			}
		}
	}
	c, err = parseScene(scene, page)
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
		value: place{Name: a.Value.Name, Figure: a.Value.Figure, Offline: !owned},
	}
}

// confirm makes p the write that confirms the place with an id, and keeps its owners.
func (p *placing) confirm(avatar string, id int64) {
	p.by, p.lease, p.max, p.only = nil, 0, 0, kit.Same(placeField(avatar), id)
}

// writePlace sets an avatar's place, and returns its id.
func (s *Scenes) writePlace(ctx context.Context, a *storedAvatar, p placing) (int64, error) {
	op := kit.Set(placeField(a.key), p.value)
	op.Holder, op.TTL, op.GroupMax = state.UserHolder(a.Value.User), p.lease, p.max
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
		done, err := s.store.Change(ctx, sceneChannel(p.scene), u, false)
		id = done.ID
		return err
	})
	return id, kit.IfChanged(err)
}

// settle makes the places of an avatar agree with its record, and returns the avatar. It
// finishes a transfer that stopped after any step. Several may run at the same time.
func (s *Scenes) settle(ctx context.Context, id string) (*storedAvatar, error) {
	return s.avatars.Edit(ctx, id, func(a *storedAvatar) error {
		if a.Value.Scene != "" {
			again, err := s.ensurePlace(ctx, a, nil)
			if err != nil {
				return err
			}
			*a = *again
		}
		for scene, field := range a.left {
			if err := s.leave(ctx, a, scene, field); err != nil {
				return err
			}
		}
		return nil
	})
}

// ensurePlace makes the avatar listed in the scene of its record, and returns the avatar as it
// is then. If by is not nil, its connection becomes an owner of the place. If the scene is
// deleted, the avatar is in no scene.
func (s *Scenes) ensurePlace(ctx context.Context, a *storedAvatar, by *session.Caller) (*storedAvatar, error) {
	scene := a.Value.Scene
	c, p, err := s.readPlace(ctx, scene, a.key)
	if err != nil {
		return nil, err
	}
	if !c.Exists() || c.Value.Status == Deleted {
		to := a.Value
		to.Scene = ""
		if err := s.move(ctx, a, to); err != nil {
			return nil, err
		}
		return nil, kit.ErrChanged // reads what the move has noted
	}
	place := s.newPlacing(a, scene, p, by)
	if p == nil {
		place.only = kit.Same(placeField(a.key), 0)
		if _, err = s.writePlace(ctx, a, place); err == nil {
			err = kit.ErrChanged // reads the record again, and then confirms the place
		}
		return nil, err
	}
	again, err := s.avatars.Find(ctx, a.key) // after the place
	if err != nil {
		return nil, err
	}
	if !again.in(scene) {
		return nil, kit.ErrChanged
	}
	place = s.newPlacing(again, scene, p, by)
	place.lease, place.only = 0, kit.Same(placeField(a.key), p.ID)
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
	return p.value == want && p.Holder == state.UserHolder(a.Value.User)
}

// leave deletes an avatar's place in a scene that its record does not name. field is the id of the
// field $$left/{scene}, which it deletes, too; 0 means that there is none.
func (s *Scenes) leave(ctx context.Context, a *storedAvatar, scene string, field int64) error {
	_, p, err := s.readPlace(ctx, scene, a.key)
	if err != nil {
		return err
	}
	if p != nil {
		again, err := s.avatars.Find(ctx, a.key) // after the place
		if err != nil {
			return err
		}
		if err := s.fault("leaving"); err != nil {
			return err
		}
		if !again.in(scene) {
			u := &state.Update{Ops: []state.Op{kit.Delete(placeField(a.key))}, If: []state.Condition{kit.Same(placeField(a.key), p.ID)}}
			if _, err := s.change(ctx, sceneChannel(scene), u); err != nil {
				return fmt.Errorf("leave %s: %w", sceneChannel(scene), err)
			}
		}
	}
	if err := s.fault("leave"); err != nil || field == 0 {
		return err
	}
	u := &state.Update{Ops: []state.Op{kit.Delete(leftGroup + scene)}, If: []state.Condition{kit.Same(leftGroup+scene, field)}}
	_, err = s.change(ctx, avatarChannel(a.key), u)
	return err
}

// in reports whether the avatar's record names the scene. The avatar may not exist.
func (a *storedAvatar) in(scene string) bool { return a.Value.Scene == scene }

// full is the error of a scene without a free place.
func full(scene string, capacity int) error {
	return wire.Errorf(wire.Full, "scene %s has %d avatars, that is all", scene, capacity).With(map[string]any{"max": capacity})
}
