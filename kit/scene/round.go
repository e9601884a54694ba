package scene

import (
	"context"
	"errors"
	"time"

	"switchboard/kit"
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
	if isNotFound(err) {
		return 0, s.opts.Avatars.Put(ctx, index.Card{ID: id, Version: takenVersion})
	}
	if err != nil {
		return 0, err
	}
	if a.value.Status == Deleted {
		if next = time.Until(queue.TimeOf(a.id).Add(s.opts.DeletedLife)); next <= 0 {
			return 0, s.end(ctx, id)
		}
	}
	return next, s.opts.Avatars.Put(ctx, a.card())
}

func (s *Scenes) finishScene(ctx context.Context, id string) (next time.Duration, err error) {
	err = s.settleScene(ctx, id)
	var c *storedScene
	if err == nil {
		c, err = s.readScene(ctx, id)
	}
	switch {
	case isNotFound(err): // its creation was refused
		return 0, nil
	case err != nil:
		return 0, err
	}
	return 0, s.opts.Scenes.Put(ctx, c.card())
}
