package registry

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
)

// BindUsers writes each binding to its u_{user} and renews the TTL. It returns one error for each
// binding, in the order of list. If the client has a binding of a higher generation, BindUsers
// changes nothing and returns no error. A user has at most MaxClients clients: a new one replaces
// the offline client with the lowest generation. The error is ErrTooManyClients if none is offline,
// or if Options.MaxOnline other clients of the user are online. It is ErrRevoked if the client's
// token was revoked. It sets Subscribed and Watchers of the bindings.
func (r *Redis) BindUsers(ctx context.Context, list []UserBinding) []error {
	targets := make([]redispipe.Target, len(list))
	for i, b := range list {
		targets[i] = redispipe.Target{
			Script: r.bindUsers,
			Keys: []string{
				r.keys.user(b.User), r.keys.revoked(b.User, ""), r.keys.revoked(b.User, b.Client),
				r.keys.subscriptions(b.User, ""), r.keys.subscriptions(b.User, b.Client), r.keys.userWatchers(b.User),
			},
			Args: []any{b.Client, b.Server, strconv.FormatInt(b.Generation, 10), strconv.FormatInt(b.Issued, 10)},
		}
	}
	errs := make([]error, len(list))
	for i, answer := range r.pipe.EvalEach(ctx, targets...) {
		b, err := list[i], answer.Err
		if err == nil {
			var reply int64
			if reply, list[i].Watchers, err = splitReply(answer.Value); err == nil {
				err, list[i].Subscribed = bindErrors[reply], reply == 2
			}
		}
		if err != nil {
			errs[i] = fmt.Errorf("bind client %s of user %s: %w", b.Client, b.User, err)
		}
	}
	return errs
}

// UsersHave returns for each binding whether u_{user} has it, in one round trip to each node of the
// store.
func (r *Redis) UsersHave(ctx context.Context, list []UserBinding) ([]bool, error) {
	keys := make([]string, len(list))
	for i, b := range list {
		keys[i] = r.keys.user(b.User)
	}
	values, err := r.fieldOfEach(ctx, keys, func(i int) string { return list[i].Client })
	if err != nil {
		return nil, fmt.Errorf("bindings of %d users: %w", len(list), err)
	}
	have := make([]bool, len(list))
	for i, value := range values {
		b, ok := parseBinding(list[i].Client, value)
		have[i] = ok && b == list[i].Binding
	}
	return have, nil
}

// bindErrors are the errors of the answers of the script.
var bindErrors = map[int64]error{2: nil, 1: nil, 0: ErrTooManyClients, -1: ErrRevoked}

// splitReply returns the number and the names, sorted, of the answer to bind_user.
func splitReply(value any) (number int64, names []string, err error) {
	if number, alone := value.(int64); alone {
		return number, nil, nil
	}
	reply := redispipe.ReplyOf(value)
	number, names = reply.Int(), reply.Rest()
	slices.Sort(names)
	return number, names, reply.Err
}

// ReleaseUser marks the client offline in u_{user} if its entry has this generation. The client
// stays known. ReleaseUser returns the servers that watch the user, sorted. It does so whatever the
// generation: if the client has moved, the hint of its new server may be lost.
func (r *Redis) ReleaseUser(ctx context.Context, user, client string, generation int64) (watchers []string, err error) {
	reply, err := r.pipe.EvalArray(ctx, releaseUserScript, []string{r.keys.user(user), r.keys.userWatchers(user)}, client, generation)
	if err == nil {
		watchers, err = reply.Rest(), reply.Err
	}
	if err != nil {
		return nil, fmt.Errorf("release client %s of user %s: %w", client, user, err)
	}
	slices.Sort(watchers)
	return watchers, nil
}

// ForgetUser removes the client from u_{user}, unless its entry has a higher generation.
func (r *Redis) ForgetUser(ctx context.Context, user, client string, generation int64) error {
	if _, err := r.pipe.EvalInt(ctx, forgetUserScript, []string{r.keys.user(user)}, client, generation); err != nil {
		return fmt.Errorf("forget client %s of user %s: %w", client, user, err)
	}
	return nil
}

// User returns all known clients of the user, sorted by client. It skips malformed entries.
func (r *Redis) User(ctx context.Context, user string) ([]Binding, error) {
	fields, err := r.fields(ctx, r.keys.user(user))
	if err != nil {
		return nil, fmt.Errorf("clients of user %s: %w", user, err)
	}
	return bindingsOf(fields), nil
}

// Users returns for each user what User returns, in one round trip to each node of the store.
func (r *Redis) Users(ctx context.Context, users []string) ([][]Binding, error) {
	cmds := make([]redis.Cmder, len(users))
	for i, user := range users {
		cmds[i] = redis.NewMapStringStringCmd(ctx, "hgetall", r.keys.user(user))
	}
	if err := r.pipe.DoAll(ctx, cmds); err != nil {
		return nil, fmt.Errorf("clients of %d users: %w", len(users), err)
	}
	found := make([][]Binding, len(users))
	for i, cmd := range cmds {
		found[i] = bindingsOf(cmd.(*redis.MapStringStringCmd).Val())
	}
	return found, nil
}

func bindingsOf(fields map[string]string) []Binding {
	var bindings []Binding
	for client, value := range fields {
		if b, ok := parseBinding(client, value); ok {
			bindings = append(bindings, b)
		}
	}
	sortBindings(bindings)
	return bindings
}

func sortBindings(bindings []Binding) {
	slices.SortFunc(bindings, func(a, b Binding) int { return cmp.Compare(a.Client, b.Client) })
}
