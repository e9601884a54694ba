package scene

import (
	"context"
	"time"

	"switchboard/broker/session"
	"switchboard/internal/state"
	"switchboard/kit/budget"
	"switchboard/kit/index"
)

// newBudget returns the budget of the avatars that users create. An avatar is charged until it is
// deleted. The deleted ones, which a backend can restore, have a bound of their own, see
// endDeleted.
func (s *Scenes) newBudget() *budget.Budget {
	return budget.New(budget.Options{
		Store: s.opts.Budget, Kind: "avatars", Setting: "kit.scenes.per_user", Most: s.opts.PerUser, Endless: true,
		Ended: func(ctx context.Context, user string, ids []string) (ended []string, err error) {
			avatars, err := readAvatars(ctx, s.host, ids)
			for i, a := range avatars {
				if a == nil || a.value.User != user || a.value.Status == Deleted {
					ended = append(ended, ids[i])
				}
			}
			return ended, err
		},
	})
}

// createOwn creates an avatar of a client's user. The broker chooses the id.
func (s *Scenes) createOwn(ctx context.Context, c session.Caller, q newAvatarRequest) (*Avatar, error) {
	n := NewAvatar{Key: q.Key, User: c.User, Name: q.Name, Figure: q.Figure, Data: q.Data}
	if err := n.check(); err != nil {
		return nil, err
	}
	if q.Key != "" { // a repeated call is not charged
		if a, err := s.GetAvatar(ctx, n.ID); !isNotFound(err) {
			return a, err
		}
	}
	if _, err := s.budget.Charge(ctx, c.User, n.ID); err != nil {
		return nil, err
	}
	// If the avatar is not stored, the budget has it until it is spent.
	return s.createAvatar(ctx, n)
}

// uncharge returns a deleted avatar to the budget of its user.
func (s *Scenes) uncharge(ctx context.Context, a *Avatar) {
	if err := s.budget.Return(ctx, a.User, a.ID); err != nil {
		s.log.Warn().Err(err).Str("avatar", a.ID).Msg("the budget of a user has the avatar until it is spent")
	}
}

// endKeep is how long the ids of the channel of an avatar that has ended go on.
const endKeep = time.Hour

// endDeleted ends the oldest deleted avatars of a user, so that at most Options.PerUser are left.
func (s *Scenes) endDeleted(ctx context.Context, user string) error {
	list := deletedList(userList(user))
	counts, err := s.opts.Avatars.Count(ctx, list)
	if err != nil || counts[0] <= s.opts.PerUser {
		return err
	}
	page, err := s.opts.Avatars.List(ctx, index.Query{List: list, Limit: counts[0] - s.opts.PerUser})
	for _, c := range page.Cards {
		if err == nil {
			err = s.end(ctx, c.ID)
		}
	}
	return err
}

// end removes the record and the card of a deleted avatar. It does nothing to an avatar that is not
// deleted any more.
func (s *Scenes) end(ctx context.Context, id string) error {
	a, err := s.settle(ctx, id)
	if isNotFound(err) {
		return s.opts.Avatars.Put(ctx, index.Card{ID: id, Version: takenVersion})
	}
	if err != nil || a.value.Status != Deleted {
		return err
	}
	u := &state.Update{Ops: []state.Op{remove(avatarField)}, If: []state.Condition{version(avatarField, a.id)}}
	u.Keep = endKeep
	ended, err := s.change(ctx, avatarChannel(id), u)
	if err != nil {
		return err
	}
	return s.opts.Avatars.Put(ctx, index.Card{ID: id, Version: ended})
}
