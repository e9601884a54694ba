package janitor

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"switchboard/events"
)

// eventRound is one kind of round over the events.
type eventRound struct {
	kind  string
	every time.Duration
	round func(context.Context) (Report, error)
}

// eventRounds are those there are, in the order in which one of each finds most to do. A dry run has none: to
// look at what is due changes it.
func (j *Janitor) eventRounds() []eventRound {
	e := j.opts.Events
	if e == nil || j.opts.DryRun {
		return nil
	}
	counted := func(kind string, round func(context.Context) (events.Report, error)) func(context.Context) (Report, error) {
		return func(ctx context.Context) (Report, error) {
			return j.measured(kind, func(did *tally) error {
				r, err := round(ctx)
				did.told.Add(int64(r.Told))
				did.sent.Add(int64(r.Sent))
				did.dead.Add(int64(r.Dead))
				return err
			})
		}
	}
	return []eventRound{
		{sweep, j.opts.SweepEvery, counted(sweep, e.SweepRound)},
		{due, j.opts.EventsEvery, counted(due, e.DueRound)},
		{send, j.opts.EventsEvery, counted(send, e.SendRound)},
	}
}

// levelOf is how loud a round is that did something: events are everyday's work.
func levelOf(kind string) zerolog.Level {
	if kind == servers || kind == queues {
		return zerolog.InfoLevel
	}
	return zerolog.DebugLevel
}
