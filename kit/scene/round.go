package scene

import (
	"context"
	"errors"
	"time"

	"switchboard/broker/session"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/kit/budget"
	"switchboard/kit/index"
	"switchboard/queue"
)

const (
	// taskLease is how long a broker has for a task of the round.
	taskLease = time.Minute
	// roundSize is the most tasks that a broker takes at once, of avatars and of scenes.
	roundSize = 50
)

// rounds are those over the avatars, or the scenes. Each looks at what has changed.
func (s *Scenes) rounds(of index.Index, others ...index.Index) *kit.Rounds {
	return &kit.Rounds{
		Index: of, Others: others, Lease: s.opts.Rounds, Every: s.opts.Every, TaskLease: taskLease, Batch: roundSize,
	}
}

// Run makes rounds until ctx ends.
func (s *Scenes) Run(ctx context.Context) error {
	return s.rounds(s.opts.Scenes, s.opts.Avatars).Run(ctx, s.log, "scenes and avatars", func(ctx context.Context) error {
		_, err := s.Round(ctx)
		return err
	})
}

// Round looks at the avatars and scenes that are due: it finishes transfers and changes of names
// that stopped, and writes the lists. It returns how many it has looked at.
func (s *Scenes) Round(ctx context.Context) (n int, err error) {
	for _, kind := range []struct {
		*kit.Rounds
		finish func(context.Context, string) (next time.Duration, err error)
	}{{s.rounds(s.opts.Scenes), s.finishScene}, {s.rounds(s.opts.Avatars), s.finishAvatar}} {
		err = errors.Join(err, kind.Take(ctx, func(tasks []index.Task, _ time.Duration) error {
			n += len(tasks)
			return kind.Finish(ctx, tasks, kind.finish)
		}))
	}
	return n, err
}

// finishAvatar makes the places and the lists of an avatar agree with its record. A deleted avatar
// ends when its time has come. next is the time until then, or 0.
func (s *Scenes) finishAvatar(ctx context.Context, id string) (next time.Duration, err error) {
	a, err := s.settle(ctx, id)
	if kit.HasCode(err, wire.NotFound) {
		return 0, s.opts.Avatars.Put(ctx, index.Card{ID: id, Version: takenVersion})
	}
	if err != nil {
		return 0, err
	}
	if a.Value.Status == Deleted {
		if next = time.Until(queue.TimeOf(a.ID).Add(s.opts.DeletedLife)); next <= 0 {
			return 0, s.end(ctx, id)
		}
	}
	return next, s.opts.Avatars.Put(ctx, a.card())
}

func (s *Scenes) finishScene(ctx context.Context, id string) (next time.Duration, err error) {
	if err = s.settleScene(ctx, id); err == nil {
		var c *storedScene
		if c, err = s.scenes.Get(ctx, id); err == nil {
			err = s.opts.Scenes.Put(ctx, c.card())
		}
	}
	if kit.HasCode(err, wire.NotFound) { // its creation was refused
		err = nil
	}
	return 0, err
}

// newBudget returns the budget of the avatars that users create. An avatar is charged until it is
// deleted. The deleted ones, which a backend can restore, have a bound of their own, see
// endDeleted.
func (s *Scenes) newBudget() *budget.Budget {
	return budget.New(budget.Options{
		Store: s.opts.Budget, Kind: "avatars", Setting: "kit.scenes.per_user", Most: s.opts.PerUser, Endless: true, Log: s.log,
		Ended: func(ctx context.Context, user string, ids []string) (ended []string, err error) {
			avatars, err := s.avatars.Each(ctx, ids)
			for i, a := range avatars {
				if !a.Exists() || a.Value.User != user || a.Value.Status == Deleted {
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
		if a, err := s.GetAvatar(ctx, n.ID); !kit.HasCode(err, wire.NotFound) {
			return a, err
		}
	}
	if _, err := s.budget.Charge(ctx, c.User, n.ID); err != nil {
		return nil, err
	}
	// If the avatar is not stored, the budget has it until it is spent.
	return s.createAvatar(ctx, n)
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
	if kit.HasCode(err, wire.NotFound) {
		return s.opts.Avatars.Put(ctx, index.Card{ID: id, Version: takenVersion})
	}
	if err != nil || a.Value.Status != Deleted {
		return err
	}
	u := &state.Update{Ops: []state.Op{kit.Delete(avatarField)}, If: []state.Condition{kit.Same(avatarField, a.ID)}}
	u.Keep = endKeep
	ended, err := s.change(ctx, avatarChannel(id), u)
	if err != nil {
		return err
	}
	return s.opts.Avatars.Put(ctx, index.Card{ID: id, Version: ended})
}

// forget ends all avatars of a user, also the deleted ones.
func (s *Scenes) forget(ctx context.Context, user string) (removed int, err error) {
	for _, list := range []string{userList(user), deletedList(userList(user))} {
		for cards, err := range index.Pages(ctx, s.opts.Avatars, index.Query{List: list}) {
			if err != nil {
				return removed, err
			}
			for _, c := range cards {
				_, err := s.DeleteAvatar(ctx, c.ID, nil, nil)
				if err == nil || kit.HasCode(err, wire.NotFound) {
					err = s.end(ctx, c.ID)
				}
				if err != nil {
					return removed, err
				}
				removed++
			}
		}
	}
	return removed, nil
}
