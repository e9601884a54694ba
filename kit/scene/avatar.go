package scene

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/kit/index"
	"switchboard/queue"
)

const (
	avatarPrefix = "avatar:"
	avatarField  = "$$avatar"
	leftGroup    = "$$left/"
)

func avatarChannel(id string) string { return avatarPrefix + id }

// Avatar is a character of an account.
type Avatar struct {
	ID string `json:"id"`
	AvatarFields
	Version int64 `json:"version"` // it changes with every change of the avatar
}

// AvatarFields are what the store and the callers see of an avatar.
type AvatarFields struct {
	User    string          `json:"user"` // its account
	Name    string          `json:"name"`
	Figure  string          `json:"figure,omitempty"`
	Status  Status          `json:"status"` // Open or Deleted
	Scene   string          `json:"scene,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
	Created int64           `json:"created"` // Unix ms
}

// avatarRecord is the value of $$avatar.
type avatarRecord struct {
	Format int `json:"v"`
	AvatarFields
}

// storedAvatar is an avatar as its channel has it.
type storedAvatar struct {
	kit.Record[avatarRecord]
	key  string           // the id of the avatar
	left map[string]int64 // scenes that may still have a place, and the ids of their fields
}

func (a *storedAvatar) show() *Avatar { return &Avatar{a.key, a.Value.AvatarFields, a.ID} }

// card returns the entry of an avatar in the lists. The list of its scene counts the avatars there.
func (a *storedAvatar) card() index.Card {
	lists := map[string]int64{userList(a.Value.User): a.Value.Created}
	if a.Value.Status == Deleted {
		lists = map[string]int64{deletedList(userList(a.Value.User)): a.Value.Created}
	}
	if a.Value.Scene != "" {
		lists[sceneList(a.Value.Scene)] = 0
	}
	return index.Card{ID: a.key, Version: a.ID, Lists: lists}
}

// avatarsIn returns the avatars of a store. Lists and checks do not need the scenes that an avatar
// has left.
func avatarsIn(states kit.StateReader, lists index.Index) kit.Documents[*storedAvatar] {
	return kit.Documents[*storedAvatar]{
		Kind: "avatar", Prefix: avatarPrefix, Record: avatarField, States: states, Index: lists,
		Whole: queue.StateRead{Prefix: "$$"}, Brief: queue.StateRead{Fields: []string{avatarField}}, Parse: parseAvatar,
		Card: (*storedAvatar).card, CheckID: func(id string) error { return checkID("avatar", id) },
	}
}

func parseAvatar(id string, page *queue.StatePage) (*storedAvatar, error) {
	a := &storedAvatar{key: id, left: map[string]int64{}}
	for _, f := range page.Fields {
		if scene, ok := strings.CutPrefix(f.Name, leftGroup); ok {
			a.left[scene] = f.ID
		} else if f.Name == avatarField {
			if err := a.Read(f.Field); err != nil {
				return nil, err
			}
		}
	}
	return a, kit.CheckFormat(a.Value.Format, formatVersion)
}

// NewAvatar describes an avatar to create.
type NewAvatar struct {
	ID string `json:"id"` // zero means a random id
	// Key makes the call idempotent: a repeated call of the user returns the same avatar. It must not
	// be used together with ID.
	Key    string          `json:"key"`
	User   string          `json:"user" required:"true"`
	Name   string          `json:"name" required:"true"`
	Figure string          `json:"figure"`
	Data   json.RawMessage `json:"data"`
}

func (n *NewAvatar) check() error {
	if err := kit.CheckKey(n.ID, n.Key); err != nil {
		return err
	}
	n.ID = idOf(n.ID, n.User, n.Key)
	return cmp.Or(checkID("id", n.ID), wire.CheckName("user", n.User), checkName(n.Name), checkText("figure", n.Figure), checkData(n.Data))
}

// CreateAvatar creates an avatar. It is in no scene. It is a Conflict if the id is taken, also by a
// deleted avatar. A repeated Key returns the avatar as it is.
func (s *Scenes) CreateAvatar(ctx context.Context, n NewAvatar) (*Avatar, error) {
	if err := n.check(); err != nil {
		return nil, err
	}
	return s.createAvatar(ctx, n)
}

// createAvatar creates an avatar that has been checked.
func (s *Scenes) createAvatar(ctx context.Context, n NewAvatar) (*Avatar, error) {
	if err := s.avatars.Note(ctx, n.ID); err != nil {
		return nil, err
	}
	r := avatarRecord{formatVersion, AvatarFields{
		User: n.User, Name: n.Name, Figure: n.Figure, Status: Open, Data: n.Data, Created: now(),
	}}
	id, err := s.change(ctx, avatarChannel(n.ID), &state.Update{
		Ops: []state.Op{kit.Set(avatarField, r)}, If: []state.Condition{kit.Same(avatarField, 0)},
	})
	switch {
	case errors.Is(err, kit.ErrChanged) && n.Key != "":
		return s.GetAvatar(ctx, n.ID)
	case errors.Is(err, kit.ErrChanged):
		return nil, wire.Errorf(wire.Conflict, "there is an avatar %s", n.ID)
	case err != nil:
		return nil, fmt.Errorf("create %s: %w", avatarChannel(n.ID), err)
	}
	return s.list(ctx, &storedAvatar{Record: kit.Record[avatarRecord]{Value: r, ID: id}, key: n.ID}), nil
}

// list puts an avatar into the lists, and shows it.
func (s *Scenes) list(ctx context.Context, a *storedAvatar) *Avatar {
	s.avatars.Show(ctx, a.card())
	return a.show()
}

// GetAvatar returns an avatar, also a deleted one.
func (s *Scenes) GetAvatar(ctx context.Context, id string) (*Avatar, error) {
	a, err := s.avatars.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	return a.show(), nil
}

// checkOwner returns an error unless the avatar belongs to the user. A nil user may do everything.
// For other users, a deleted avatar is not there.
func (s *Scenes) checkOwner(a *storedAvatar, user *string) error {
	switch {
	case user == nil || a.Value.User == *user:
		return nil
	case a.Value.Status == Deleted:
		return s.avatars.NotFound(a.key)
	}
	return wire.Errorf(wire.Forbidden, "avatar %s belongs to another user", a.key)
}

// AvatarPatch changes members of an avatar. Nil members stay.
type AvatarPatch struct {
	Version *int64          `json:"version"` // the version that must not have changed
	Name    *string         `json:"name"`
	Figure  *string         `json:"figure"`
	Status  *Status         `json:"status"` // Open restores a deleted avatar. Deleted also takes it out of its scene
	Data    json.RawMessage `json:"data"`
}

func (p *AvatarPatch) apply(r *avatarRecord) error {
	kit.Patch(&r.Name, p.Name)
	kit.Patch(&r.Figure, p.Figure)
	kit.Patch(&r.Status, p.Status)
	if p.Data != nil {
		r.Data = p.Data
	}
	if p.Status != nil && r.Status != Open && r.Status != Deleted {
		return wire.Errorf(wire.BadRequest, "status: want %s or %s", Open, Deleted)
	}
	return cmp.Or(checkName(r.Name), checkText("figure", r.Figure), checkData(r.Data))
}

// PatchAvatar changes an avatar. If user is not nil, it must be the avatar's user, and the avatar
// must not be deleted. A deleted avatar ends after Options.DeletedLife.
func (s *Scenes) PatchAvatar(ctx context.Context, id string, user *string, p AvatarPatch) (*Avatar, error) {
	a, err := s.changeAvatar(ctx, id, user, func(a *storedAvatar, r *avatarRecord) error {
		if user != nil && r.Status == Deleted {
			return s.avatars.NotFound(id)
		}
		if err := checkVersion("avatar", a.key, p.Version, a.ID, a.show()); err != nil {
			return err
		}
		if err := p.apply(r); err != nil {
			return err
		}
		if r.Status == Deleted {
			r.Scene = ""
		}
		return nil
	})
	if err == nil && a.Status == Deleted {
		s.afterDelete(ctx, a)
	}
	return a, err
}

// afterDelete returns a deleted avatar to the budget of its user, and ends older ones. What fails
// is done later.
func (s *Scenes) afterDelete(ctx context.Context, a *Avatar) {
	s.budget.Return(ctx, a.User, a.ID)
	if err := s.endDeleted(ctx, a.User); err != nil {
		s.log.Warn().Err(err).Str("user", a.User).Msg("deleted avatars end later")
	}
}

// DeleteAvatar marks an avatar as deleted, and takes it out of its scene. If it is deleted, nothing
// changes. If user is not nil, it must be the avatar's user.
func (s *Scenes) DeleteAvatar(ctx context.Context, id string, user *string, version *int64) (*Avatar, error) {
	a, err := s.changeAvatar(ctx, id, user, func(a *storedAvatar, r *avatarRecord) error {
		if err := checkVersion("avatar", a.key, version, a.ID, a.show()); err != nil {
			return err
		}
		if r.Status == Deleted {
			return errSame
		}
		r.Status, r.Scene = Deleted, ""
		return nil
	})
	if err == nil {
		s.afterDelete(ctx, a)
	}
	return a, err
}

// Leave takes an avatar out of its scene. If it is in none, nothing changes. Only backends may do
// so.
func (s *Scenes) Leave(ctx context.Context, id string) (*Avatar, error) {
	return s.changeAvatar(ctx, id, nil, func(_ *storedAvatar, r *avatarRecord) error {
		if r.Scene == "" {
			return errSame
		}
		r.Scene = ""
		return nil
	})
}

// errSame is the error of an edit that changes nothing. So a repeated call has the answer of the
// first one.
var errSame = errors.New("nothing changes")

// changeAvatar changes the record of an avatar, unless the error of edit is errSame, and then its
// places.
func (s *Scenes) changeAvatar(ctx context.Context, id string, user *string, edit func(*storedAvatar, *avatarRecord) error) (*Avatar, error) {
	_, err := s.avatars.Edit(ctx, id, func(a *storedAvatar) error {
		r := a.Value
		err := s.checkOwner(a, user)
		if err == nil {
			err = edit(a, &r)
		}
		if err != nil {
			return err
		}
		return s.move(ctx, a, r)
	})
	if err != nil && err != errSame { // an earlier call may have failed after its change
		return nil, err
	}
	a, err := s.settle(ctx, id)
	if err != nil {
		return nil, err
	}
	return s.list(ctx, a), nil
}

// move writes the record of an avatar if it has not changed, and notes the scene that it leaves.
func (s *Scenes) move(ctx context.Context, a *storedAvatar, to avatarRecord) error {
	if err := s.avatars.Note(ctx, a.key); err != nil {
		return err
	}
	// An update that is stored later than the round looks would not be noticed.
	ctx, cancel := context.WithTimeout(ctx, s.opts.Delay/2)
	defer cancel()
	u := &state.Update{Ops: []state.Op{kit.Set(avatarField, to)}, If: []state.Condition{kit.Same(avatarField, a.ID)}}
	if from := a.Value.Scene; from != "" && from != to.Scene {
		u.Ops = append(u.Ops, kit.Set(leftGroup+from, true))
	}
	id, err := s.change(ctx, avatarChannel(a.key), u)
	if err == nil {
		a.Value, a.ID = to, id
	}
	return err
}

// AvatarPage is a part of the avatars of a user.
type AvatarPage struct {
	Avatars []*Avatar `json:"avatars"`
	Cursor  string    `json:"cursor,omitempty"` // of the next page
}

// ListAvatars returns avatars of a user, the oldest first: those with the status Open, or Deleted.
func (s *Scenes) ListAvatars(ctx context.Context, user string, status Status, cursor string, limit int) (*AvatarPage, error) {
	list, ok := map[Status]string{"": userList(user), Open: userList(user), Deleted: deletedList(userList(user))}[status]
	if !ok {
		return nil, wire.Errorf(wire.BadRequest, "status: want %s or %s", Open, Deleted)
	}
	avatars, next, err := s.avatars.List(ctx, index.Query{List: list, Cursor: cursor, Limit: limit}, func(a *storedAvatar) bool {
		return a.Value.User == user && a.Value.Status == cmp.Or(status, Open)
	})
	if err != nil {
		return nil, err
	}
	p := &AvatarPage{Avatars: make([]*Avatar, len(avatars)), Cursor: next}
	for i, a := range avatars {
		p.Avatars[i] = a.show()
	}
	return p, nil
}
