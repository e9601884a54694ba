package scene

import (
	"context"
	"errors"
	"time"

	"switchboard/kit/index"
	"switchboard/queue"
)

const (
	// taskLease is how long a broker has for a task of the round.
	taskLease = time.Minute
	// roundSize is the most tasks that a broker takes at once, of avatars and of scenes.
	roundSize = 50
)

// Run makes rounds until ctx ends.
func (s *Scenes) Run(ctx context.Context) error {
	tick := time.NewTicker(s.opts.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := s.opts.Rounds.Do(ctx, false, func(ctx context.Context) error {
			_, err := s.Round(ctx)
			return err
		})
		if err != nil && ctx.Err() == nil {
			s.log.Warn().Err(err).Msg("scenes: a round failed; the next one tries again")
		}
	}
}

// Round looks at the avatars and scenes that are due: it finishes transfers and changes of names
// that stopped, and writes the lists. It returns how many it has looked at.
func (s *Scenes) Round(ctx context.Context) (n int, err error) {
	for _, kind := range []struct {
		index  index.Index
		finish func(context.Context, string) (next time.Duration, err error)
	}{{s.opts.Scenes, s.finishScene}, {s.opts.Avatars, s.finishAvatar}} {
		for left := roundSize; left == roundSize && ctx.Err() == nil; n += left {
			tasks, takeErr := kind.index.Take(ctx, roundSize, taskLease)
			left, err = len(tasks), errors.Join(err, takeErr)
			for _, t := range tasks {
				next, taskErr := kind.finish(ctx, t.ID)
				if taskErr == nil || isNotFound(taskErr) { // the creation was refused
					taskErr = kind.index.Done(ctx, map[index.Task]time.Duration{t: next})
				}
				err = errors.Join(err, taskErr) // the task is due again when its lease ends
			}
		}
		err = errors.Join(err, kind.index.Sweep(ctx, roundSize))
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
	if err := s.settleScene(ctx, id); err != nil {
		return 0, err
	}
	c, err := s.readScene(ctx, id)
	if err != nil {
		return 0, err
	}
	return 0, s.opts.Scenes.Put(ctx, c.card())
}
