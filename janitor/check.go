package janitor

import (
	"context"
	"iter"
	"slices"

	"github.com/rs/zerolog"

	"switchboard/janitor/task"
	"switchboard/queue"
)

// CheckedQueue has the methods of a queue that CheckStates calls. [queue.Redis] implements it.
type CheckedQueue interface {
	ChannelsWithStateKeys(ctx context.Context) iter.Seq2[string, error]
	CheckState(ctx context.Context, channel string) ([]queue.StateDifference, error)
}

// CheckStates returns the check "states": it looks at the state of each channel, and finds each
// difference between its records. If it finds a difference in a channel, it looks at the channel
// again at once, and returns only what has stayed. It logs the number of states.
func CheckStates(q CheckedQueue, log zerolog.Logger) task.Check {
	return task.Check{Name: "states", Find: func(ctx context.Context) ([]task.Finding, error) {
		found, checked, err := findInStates(ctx, q)
		if err == nil {
			log.Info().Int("states", checked).Int("differences", len(found)).Msg("compared the records of all states")
		}
		return found, err
	}}
}

// findInStates returns the differences, and the number of states.
func findInStates(ctx context.Context, q CheckedQueue) (found []task.Finding, checked int, err error) {
	seen := make(map[string]struct{})
	for channel, err := range q.ChannelsWithStateKeys(ctx) {
		if err != nil {
			return nil, 0, err
		}
		if _, again := seen[channel]; again {
			continue
		}
		seen[channel] = struct{}{}
		stayed, err := checkTwice(ctx, q, channel)
		if err != nil {
			return nil, 0, err
		}
		for _, d := range stayed {
			found = append(found, task.Finding{Subject: channel, Problem: d.Problem, Remedy: d.Remedy})
		}
	}
	return found, len(seen), nil
}

// checkTwice returns the differences that two looks find.
func checkTwice(ctx context.Context, q CheckedQueue, channel string) ([]queue.StateDifference, error) {
	first, err := q.CheckState(ctx, channel)
	if err != nil || len(first) == 0 {
		return nil, err
	}
	second, err := q.CheckState(ctx, channel)
	return slices.DeleteFunc(second, func(d queue.StateDifference) bool { return !slices.Contains(first, d) }), err
}
