package scene

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
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
	*stored[avatarRecord]
	key  string           // the id of the avatar
	left map[string]int64 // scenes that may still have a place, and the ids of their fields
}

func (a *storedAvatar) show() *Avatar { return &Avatar{a.key, a.value.AvatarFields, a.id} }

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
	if err := s.opts.Avatars.Schedule(ctx, s.opts.Delay, n.ID); err != nil {
		return nil, err
	}
	r := avatarRecord{formatVersion, AvatarFields{
		User: n.User, Name: n.Name, Figure: n.Figure, Status: Open, Data: n.Data, Created: now(),
	}}
	id, err := s.change(ctx, avatarChannel(n.ID), &state.Update{
		Ops: []state.Op{set(avatarField, r)}, If: []state.Condition{{Field: avatarField, Kind: state.IsAbsent}},
	})
	if errors.Is(err, kit.ErrChanged) {
		if n.Key != "" {
			return s.GetAvatar(ctx, n.ID)
		}
		return nil, wire.Errorf(wire.Conflict, "there is an avatar %s", n.ID)
	}
	if err != nil {
		return nil, inChannel("create", avatarChannel(n.ID), err)
	}
	return s.list(ctx, &storedAvatar{stored: &stored[avatarRecord]{r, id}, key: n.ID})
}

// list puts an avatar into the lists, and shows it. If that fails, the round does it.
func (s *Scenes) list(ctx context.Context, a *storedAvatar) (*Avatar, error) {
	if err := s.opts.Avatars.Put(ctx, a.card()); err != nil {
		s.log.Warn().Err(err).Str("avatar", a.key).Msg("the list of avatars is late")
	}
	return a.show(), nil
}

// readAvatar reads an avatar with the scenes that it has left. It returns nil if there is none.
func (s *Scenes) readAvatar(ctx context.Context, id string) (*storedAvatar, error) {
	if err := checkID("avatar", id); err != nil {
		return nil, err
	}
	return kit.ReadOne(ctx, s.host, queue.StateRead{Channel: avatarChannel(id), Prefix: "$$"}, parseAvatar)
}

// existingAvatar is readAvatar, or NotFound.
func (s *Scenes) existingAvatar(ctx context.Context, id string) (*storedAvatar, error) {
	a, err := s.readAvatar(ctx, id)
	if err == nil && a == nil {
		err = notFound("avatar", id)
	}
	return a, err
}

func parseAvatar(channel string, fields []queue.NamedField) (a *storedAvatar, err error) {
	a = &storedAvatar{key: strings.TrimPrefix(channel, avatarPrefix), left: map[string]int64{}}
	for _, f := range fields {
		if scene, ok := strings.CutPrefix(f.Name, leftGroup); ok {
			a.left[scene] = f.ID
		} else if f.Name == avatarField {
			if a.stored, err = decode[avatarRecord](f.Field); err == nil {
				err = kit.CheckFormat(a.value.Format, formatVersion)
			}
		}
	}
	if a.stored == nil || err != nil {
		return nil, err
	}
	return a, nil
}

// readAvatars reads the records of avatars. An avatar that does not exist is nil.
func readAvatars(ctx context.Context, r kit.StateReader, ids []string) ([]*storedAvatar, error) {
	return kit.ReadEach(ctx, r, avatarPrefix, ids, []string{avatarField}, parseAvatar)
}

// GetAvatar returns an avatar, also a deleted one.
func (s *Scenes) GetAvatar(ctx context.Context, id string) (*Avatar, error) {
	a, err := s.existingAvatar(ctx, id)
	if err != nil {
		return nil, err
	}
	return a.show(), nil
}

// own returns an error unless the avatar belongs to the user. A nil user may do everything. For
// other users, a deleted avatar is not there.
func (a *storedAvatar) own(user *string) error {
	if user != nil && a.value.User != *user {
		if a.value.Status == Deleted {
			return notFound("avatar", a.key)
		}
		return wire.Errorf(wire.Forbidden, "avatar %s belongs to another user", a.key)
	}
	return nil
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
			return notFound("avatar", id)
		}
		if err := a.checkVersion(p.Version); err != nil {
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
	s.uncharge(ctx, a)
	if err := s.endDeleted(ctx, a.User); err != nil {
		s.log.Warn().Err(err).Str("user", a.User).Msg("deleted avatars end later")
	}
}

// checkVersion returns a conflict unless the avatar has the version. Nil means any.
func (a *storedAvatar) checkVersion(version *int64) error {
	if version != nil && *version != a.id {
		return conflict(a.show(), "avatar %s has version %d", a.key, a.id)
	}
	return nil
}

// DeleteAvatar marks an avatar as deleted, and takes it out of its scene. If it is deleted, nothing
// changes. If user is not nil, it must be the avatar's user.
func (s *Scenes) DeleteAvatar(ctx context.Context, id string, user *string, version *int64) (*Avatar, error) {
	a, err := s.changeAvatar(ctx, id, user, func(a *storedAvatar, r *avatarRecord) error {
		if err := a.checkVersion(version); err != nil {
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
	_, err := kit.Retry(ctx, "avatar "+id, func() (*storedAvatar, error) {
		a, err := s.existingAvatar(ctx, id)
		if err == nil {
			err = a.own(user)
		}
		if err != nil {
			return nil, err
		}
		r := a.value
		switch err := edit(a, &r); err {
		case nil:
			return a, s.move(ctx, a, r)
		case errSame:
			return a, nil // an earlier call may have failed after its change: it is settled below
		default:
			return nil, err
		}
	})
	if err != nil {
		return nil, err
	}
	a, err := s.settle(ctx, id)
	if err != nil {
		return nil, err
	}
	return s.list(ctx, a)
}

// move writes the record of an avatar if it has not changed, and notes the scene that it leaves.
func (s *Scenes) move(ctx context.Context, a *storedAvatar, to avatarRecord) error {
	if err := s.opts.Avatars.Schedule(ctx, s.opts.Delay, a.key); err != nil {
		return err
	}
	// An update that is stored later than the round looks would not be noticed.
	ctx, cancel := context.WithTimeout(ctx, s.opts.Delay/2)
	defer cancel()
	u := &state.Update{Ops: []state.Op{set(avatarField, to)}, If: []state.Condition{version(avatarField, a.id)}}
	if from := a.value.Scene; from != "" && from != to.Scene {
		u.Ops = append(u.Ops, set(leftGroup+from, true))
	}
	id, err := s.change(ctx, avatarChannel(a.key), u)
	if err == nil {
		a.stored = &stored[avatarRecord]{to, id}
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
	avatars, next, err := readPage(ctx, s, s.opts.Avatars, index.Query{List: list, Cursor: cursor, Limit: limit}, readAvatars)
	if err != nil {
		return nil, err
	}
	// The records decide: the list may be some seconds old.
	avatars = slices.DeleteFunc(avatars, func(a *storedAvatar) bool {
		return a == nil || a.value.User != user || a.value.Status != cmp.Or(status, Open)
	})
	p := &AvatarPage{Avatars: make([]*Avatar, len(avatars)), Cursor: next}
	for i, a := range avatars {
		p.Avatars[i] = a.show()
	}
	return p, nil
}
