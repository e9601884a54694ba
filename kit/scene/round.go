package scene

import (
	"context"
	"errors"
	"time"

	"switchboard/kit/index"
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
		if _, err := s.Round(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn().Err(err).Msg("scenes: a round failed; the next one tries again")
		}
	}
}

// Round looks at the avatars and scenes that are due: it finishes transfers and changes of names
// that stopped, and writes the lists. It returns how many it has looked at.
func (s *Scenes) Round(ctx context.Context) (n int, err error) {
	for _, kind := range []struct {
		index  index.Index
		finish func(context.Context, string) error
	}{{s.opts.Scenes, s.finishScene}, {s.opts.Avatars, s.finishAvatar}} {
		for left := roundSize; left == roundSize && ctx.Err() == nil; n += left {
			tasks, takeErr := kind.index.Take(ctx, roundSize, taskLease)
			left, err = len(tasks), errors.Join(err, takeErr)
			for _, t := range tasks {
				taskErr := kind.finish(ctx, t.ID)
				if taskErr == nil || isNotFound(taskErr) { // the creation was refused
					taskErr = kind.index.Done(ctx, map[index.Task]time.Duration{t: 0})
				}
				err = errors.Join(err, taskErr) // the task is due again when its lease ends
			}
		}
		err = errors.Join(err, kind.index.Sweep(ctx, roundSize))
	}
	return n, err
}

func (s *Scenes) finishAvatar(ctx context.Context, id string) error {
	a, err := s.settle(ctx, id)
	if isNotFound(err) { // its place in the list of the user is free again
		return s.opts.Avatars.Put(ctx, index.Card{ID: id, Version: takenVersion})
	}
	if err != nil {
		return err
	}
	return s.opts.Avatars.Put(ctx, a.card())
}

func (s *Scenes) finishScene(ctx context.Context, id string) error {
	if err := s.settleScene(ctx, id); err != nil {
		return err
	}
	c, err := s.readScene(ctx, id)
	if err != nil {
		return err
	}
	return s.opts.Scenes.Put(ctx, c.card())
}
