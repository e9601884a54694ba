package janitor

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"switchboard/events"
)

// repeated is a kind of round of Options.Rounds or Options.Events.
type repeated struct {
	kind  string
	every time.Duration
	round func(context.Context) (Report, error)
	// schedule is nil for events: all janitors share their rounds.
	schedule *schedule
}

// eventRounds returns the rounds in the order in which each creates work for the next. A dry run
// has none, because a claim changes the due list.
func (j *Janitor) eventRounds() []repeated {
	e := j.opts.Events
	if e == nil || j.opts.DryRun {
		return nil
	}
	counted := func(kind string, round func(context.Context) (events.Report, error)) func(context.Context) (Report, error) {
		return func(ctx context.Context) (Report, error) {
			return j.measured(kind, func(counts *counters) error {
				r, err := round(ctx)
				counts.add(Report{Created: r.Created, Sent: r.Sent, DeadLettered: r.DeadLettered})
				return err
			})
		}
	}
	return []repeated{
		{kind: sweep, every: j.opts.SweepEvery, round: counted(sweep, e.SweepRound)},
		{kind: due, every: j.opts.EventsEvery, round: counted(due, e.DueRound)},
		{kind: send, every: j.opts.EventsEvery, round: counted(send, e.SendRound)},
	}
}

// levelOf returns the log level for a round that changed something. Events are frequent, and
// changes of states too, so their rounds are logged at the debug level.
func levelOf(kind string) zerolog.Level {
	switch kind {
	case states, sweep, due, send:
		return zerolog.DebugLevel
	}
	return zerolog.InfoLevel
}
