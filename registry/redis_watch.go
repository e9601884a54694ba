package registry

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"switchboard/internal/redispipe"
)

// unwatchUsers removes registrations of concurrent calls in one run of the script.
var unwatchUsers = redispipe.BatchScript{Script: unwatchUserScript}

// WatchUsers registers the server as watching the users, for Options.UserTTL: BindUsers and
// ReleaseUser return it from now on. A caller that reads the users after it misses no change.
// Repeating the call renews the registrations. The outcomes are in the order of users.
func (r *Redis) WatchUsers(ctx context.Context, server string, users []string) []WatchOutcome {
	targets := make([]redispipe.Target, len(users))
	for i, user := range users {
		targets[i] = redispipe.Target{Script: r.watchUsers, Keys: []string{r.keys.userWatchers(user)}, Args: []any{server}}
	}
	out := make([]WatchOutcome, len(users))
	for i, answer := range r.pipe.EvalEach(ctx, targets...) {
		number, ok := answer.Value.(int64)
		switch {
		case answer.Err != nil:
			out[i].Err = fmt.Errorf("watch user %s: %w", users[i], answer.Err)
		case !ok:
			out[i].Err = fmt.Errorf("watch user %s: the script answers with %T", users[i], answer.Value)
		case number < 0:
			out[i].Number = -number
		default:
			out[i] = WatchOutcome{Number: number, Renewed: true}
		}
	}
	return out
}

// UnwatchUsers removes the registrations, except those that were renewed since. So a call that the
// store executes late does not remove a newer registration. After an error, a registration that is
// left causes needless hints until it ends.
func (r *Redis) UnwatchUsers(ctx context.Context, list []UserWatch) error {
	targets := make([]redispipe.Target, len(list))
	for i, w := range list {
		targets[i] = redispipe.Target{
			Script: &unwatchUsers, Keys: []string{r.keys.userWatchers(w.User)}, Args: []any{w.Server, strconv.FormatInt(w.Number, 10)},
		}
	}
	var errs []error
	for i, answer := range r.pipe.EvalEach(ctx, targets...) {
		if answer.Err != nil {
			errs = append(errs, fmt.Errorf("unwatch user %s: %w", list[i].User, answer.Err))
		}
	}
	return errors.Join(errs...)
}
