package registry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"switchboard/internal/redispipe"
)

// Spend uses the shared budgets of senders, and returns what each of them owes, in the order of
// list. What was spent counts in any case: the caller decides whether a sender may go on. A
// Spending without cost only reads.
func (r *Redis) Spend(ctx context.Context, list []Spending) []SpendOutcome {
	targets := make([]redispipe.Target, len(list))
	for i, s := range list {
		targets[i] = redispipe.Target{
			Script: r.spend, Keys: []string{r.keys.spent(s.User, s.Address)},
			Args: []any{s.Bytes.Cost.Microseconds(), s.Bytes.Most.Microseconds(), s.Channels.Cost.Microseconds(), s.Channels.Most.Microseconds()},
		}
	}
	outcomes := make([]SpendOutcome, len(list))
	for i, answer := range r.pipe.EvalEach(ctx, targets...) {
		o := &outcomes[i]
		if o.Owed, o.Err = parseOwed(answer); o.Err != nil {
			o.Err = fmt.Errorf("spend of %s%s: %w", list[i].User, list[i].Address, o.Err)
		}
	}
	return outcomes
}

// parseOwed parses the reply of the script for one sender.
func parseOwed(answer redispipe.Answer) (Owed, error) {
	if answer.Err != nil {
		return Owed{}, answer.Err
	}
	times, _ := answer.Value.([]any)
	if len(times) != 2 {
		return Owed{}, errors.New("malformed reply")
	}
	bytes, _ := times[0].(int64)
	channels, _ := times[1].(int64)
	return Owed{time.Duration(bytes) * time.Microsecond, time.Duration(channels) * time.Microsecond}, nil
}
