package registry

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"
)

// BindUser implements [Registry].
func (r *Redis) BindUser(ctx context.Context, user string, b Binding) error {
	bound, err := r.eval(ctx, bindUserScript, []string{r.keys.user(user)},
		b.Client, b.Server, b.Generation, r.opts.UserTTL.Milliseconds(), MaxClients, r.opts.MaxOnline)
	if err == nil && bound == 0 {
		err = ErrTooManyClients
	}
	if err != nil {
		return fmt.Errorf("bind client %s of user %s: %w", b.Client, user, err)
	}
	return nil
}

// ReleaseUser implements [Registry].
func (r *Redis) ReleaseUser(ctx context.Context, user, client string, generation int64) error {
	if _, err := r.eval(ctx, releaseUserScript, []string{r.keys.user(user)}, client, generation); err != nil {
		return fmt.Errorf("release client %s of user %s: %w", client, user, err)
	}
	return nil
}

// ForgetUser implements [Registry].
func (r *Redis) ForgetUser(ctx context.Context, user, client string, generation int64) error {
	if _, err := r.eval(ctx, forgetUserScript, []string{r.keys.user(user)}, client, generation); err != nil {
		return fmt.Errorf("forget client %s of user %s: %w", client, user, err)
	}
	return nil
}

// User implements [Registry]. Entries that nobody here has written are left out.
func (r *Redis) User(ctx context.Context, user string) ([]Binding, error) {
	fields, err := r.fields(ctx, r.keys.user(user))
	if err != nil {
		return nil, fmt.Errorf("clients of user %s: %w", user, err)
	}
	return bindingsOf(fields), nil
}

// Users implements [Registry].
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
