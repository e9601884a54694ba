package scene

import (
	"context"

	"switchboard/broker/extension"
	"switchboard/kit/index"
)

// owned returns the avatars as what users own.
func (s *Scenes) owned() []extension.Owned {
	return []extension.Owned{{Kind: "avatars", Usage: s.budget.Usage, Forget: s.forget}}
}

// forget ends all avatars of users, also the deleted ones.
func (s *Scenes) forget(ctx context.Context, users []string) (removed int, err error) {
	for _, user := range users {
		for _, list := range []string{userList(user), deletedList(userList(user))} {
			n, err := s.forgetList(ctx, list)
			if removed += n; err != nil {
				return removed, err
			}
		}
	}
	return removed, s.budget.Forget(ctx, users...)
}

// forgetList ends the avatars of a list.
func (s *Scenes) forgetList(ctx context.Context, list string) (removed int, err error) {
	for cards, err := range index.Pages(ctx, s.opts.Avatars, index.Query{List: list}) {
		if err != nil {
			return removed, err
		}
		for _, c := range cards {
			if _, err := s.DeleteAvatar(ctx, c.ID, nil, nil); err != nil && !isNotFound(err) {
				return removed, err
			}
			if err := s.end(ctx, c.ID); err != nil {
				return removed, err
			}
			removed++
		}
	}
	return removed, nil
}
