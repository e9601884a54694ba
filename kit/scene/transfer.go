package scene

import (
	"context"
	"errors"

	"switchboard/broker/session"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
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
	if err := checkID("scene", t.Scene); err != nil {
		return nil, err
	}
	a, err := kit.Retry(ctx, "avatar "+t.Avatar, func() (*storedAvatar, error) { return s.transfer(ctx, &t) })
	if err != nil {
		return nil, err
	}
	return s.list(ctx, a)
}

// transfer makes the four steps of a transfer, see the comment of the package.
func (s *Scenes) transfer(ctx context.Context, t *Transfer) (*storedAvatar, error) {
	a, err := s.readAvatar(ctx, t.Avatar)
	if err != nil {
		return nil, err
	}
	if err := t.check(a); err != nil {
		return nil, err
	}
	if a.value.Scene == t.Scene {
		return s.stay(ctx, a, t)
	}
	place, taken, err := s.take(ctx, a, t)
	if err == nil {
		err = s.fault("take")
	}
	if err != nil {
		return nil, err
	}
	from, to := a.value.Scene, a.value
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

// check returns an error unless the avatar may be transferred. a may be nil.
func (t *Transfer) check(a *storedAvatar) error {
	if a == nil {
		return notFound("avatar", t.Avatar)
	}
	if t.By != nil {
		if err := a.own(&t.By.User); err != nil {
			return err
		}
	}
	switch in := a.value.Scene; {
	case a.value.Status == Deleted:
		return notFound("avatar", t.Avatar)
	case t.enter && in != "" && in != t.Scene, t.From != nil && in != *t.From:
		return conflict(a.show(), "avatar %s is in the scene %q", a.key, in)
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
		return nil, conflict(a.show(), "avatar %s was moved on to the scene %q", a.key, a.value.Scene)
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
	case c == nil || c.value.Status == Deleted:
		return p, 0, notFound("scene", t.Scene)
	case c.value.Status == Closed:
		return p, 0, wire.Errorf(wire.Locked, "scene %s is closed", t.Scene)
	}
	p = s.newPlacing(a, t.Scene, old, t.By)
	p.max, p.only = s.opts.Capacity, version(sceneField, c.id)
	id, err = s.writePlace(ctx, a, p)
	if e, ok := errors.AsType[*state.Refusal](err); ok && e.Err.Code == wire.Full {
		err = full(t.Scene, s.opts.Capacity)
	}
	return p, id, err
}
