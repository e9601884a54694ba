package janitor

import (
	"context"
	"iter"
	"slices"
)

// CheckedQueue has the methods of a queue that CheckStates calls. [queue.Redis] implements it.
type CheckedQueue interface {
	ChannelsWithStateKeys(ctx context.Context) iter.Seq2[string, error]
	CheckState(ctx context.Context, channel string) ([]string, error)
}

// CheckStates looks at the state of each channel, and calls report for each difference between its
// records. If it finds a difference, it looks again, and reports only what has stayed. It changes
// nothing. It returns the number of channels and of differences. An error ends the check.
func CheckStates(ctx context.Context, q CheckedQueue, report func(channel, difference string)) (channels, differences int, err error) {
	seen := make(map[string]struct{})
	for channel, err := range q.ChannelsWithStateKeys(ctx) {
		if err != nil {
			return channels, differences, err
		}
		if _, again := seen[channel]; again {
			continue
		}
		seen[channel] = struct{}{}
		channels++
		stayed, err := checkTwice(ctx, q, channel)
		if err != nil {
			return channels, differences, err
		}
		for _, difference := range stayed {
			report(channel, difference)
			differences++
		}
	}
	return channels, differences, nil
}

// checkTwice returns the differences that two looks find.
func checkTwice(ctx context.Context, q CheckedQueue, channel string) ([]string, error) {
	first, err := q.CheckState(ctx, channel)
	if err != nil || len(first) == 0 {
		return nil, err
	}
	second, err := q.CheckState(ctx, channel)
	return slices.DeleteFunc(second, func(difference string) bool { return !slices.Contains(first, difference) }), err
}
