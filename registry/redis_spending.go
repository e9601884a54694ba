package registry

import (
	"cmp"
	"context"
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
		reply := redispipe.ReplyOf(answer.Value)
		bytes, channels := reply.Int(), reply.Int()
		if err := cmp.Or(answer.Err, reply.Err); err != nil {
			outcomes[i].Err = fmt.Errorf("spend of %s%s: %w", list[i].User, list[i].Address, err)
			continue
		}
		outcomes[i].Owed = Owed{time.Duration(bytes) * time.Microsecond, time.Duration(channels) * time.Microsecond}
	}
	return outcomes
}
