package janitor

import (
	"context"
	"fmt"
	"slices"

	"switchboard/janitor/task"
)

// checkRounds returns an error if a round is not valid, or if its name is taken.
func checkRounds(rounds []task.Round) error {
	taken := []string{servers, queues, states, sweep, due, send}
	for _, r := range rounds {
		if err := r.Validate(); err != nil {
			return err
		}
		if slices.Contains(taken, r.Name) {
			return fmt.Errorf("two rounds have the name %s", r.Name)
		}
		taken = append(taken, r.Name)
	}
	return nil
}

// otherRounds returns the rounds of Options.Rounds.
func (j *Janitor) otherRounds() (rounds []repeated) {
	if j.opts.DryRun {
		return nil
	}
	for _, r := range j.opts.Rounds {
		rounds = append(rounds, repeated{kind: r.Name, every: r.Every, schedule: j.schedules[r.Name], round: func(ctx context.Context) (Report, error) {
			return j.measured(r.Name, func(counts *counters) error {
				changed, err := r.Do(ctx)
				counts.add(Report{Changed: changed})
				if err != nil {
					return fmt.Errorf("round %s: %w", r.Name, err)
				}
				return nil
			})
		}})
	}
	return rounds
}
