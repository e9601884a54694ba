package registry

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
)

var (
	// ErrNotReplicated is returned for a durable call that no replica has confirmed in time. The
	// change was made.
	ErrNotReplicated = redispipe.ErrNotReplicated
	// ErrNoReplicas is returned for a durable call of a registry in memory. Nothing was changed.
	ErrNoReplicas = errors.New("registry: there are no replicas of a store in memory")
)

const (
	// revokedListTTL is how long u_revoked names a user. It is much longer than a lease.
	revokedListTTL = 10 * time.Minute
	// revokedPage is the most users that are read from u_revoked at once.
	revokedPage = 1000
)

// Revoke makes BindUsers and CheckTokens refuse the tokens that it names, for Options.RevokedTTL.
// Of two revocations the later time wins. The online clients are those that were bound before.
func (r *Redis) Revoke(ctx context.Context, v Revocation) (Revoked, error) {
	script := r.revoke
	if v.Durable {
		script = r.revokeDurably
	}
	answer := r.pipe.EvalEach(ctx, redispipe.Target{
		Script: script, Keys: []string{r.keys.revoked(v.User, v.Client), r.keys.user(v.User)}, Args: []any{strconv.FormatInt(v.Before, 10)},
	})[0]
	unconfirmed := answer.Err
	if unconfirmed != nil && !errors.Is(unconfirmed, ErrNotReplicated) {
		return Revoked{}, fmt.Errorf("revoke tokens of user %s: %w", v.User, unconfirmed)
	}
	reply := redispipe.ReplyOf(answer.Value)
	revoked := Revoked{Before: reply.Int(), Until: reply.Int()}
	revoked.Clients = onlineOf(bindingsOf(redispipe.Pairs(reply.Rest())), v.Client)
	err := reply.Err
	if err == nil {
		_, err = r.pipe.EvalInt(ctx, listRevokedScript, []string{r.keys.revokedList()}, v.User, revokedListTTL.Milliseconds())
	}
	if err != nil {
		return Revoked{}, fmt.Errorf("revoke tokens of user %s: %w", v.User, err)
	}
	return revoked, unconfirmed
}

// onlineOf returns the bindings of a client that have a server; "" stands for all clients. It
// reuses the list.
func onlineOf(list []Binding, client string) []Binding {
	online := list[:0]
	for _, b := range list {
		if b.Server != "" && (client == "" || b.Client == client) {
			online = append(online, b)
		}
	}
	return online
}

// CheckTokens returns one error for each entry, in the order of list: ErrRevoked if the client's
// token was revoked. It uses User, Client and Issued.
func (r *Redis) CheckTokens(ctx context.Context, list []UserBinding) []error {
	targets := make([]redispipe.Target, len(list))
	for i, b := range list {
		targets[i] = redispipe.Target{
			Script: r.checkTokens, Keys: []string{r.keys.revoked(b.User, ""), r.keys.revoked(b.User, b.Client)},
			Args: []any{strconv.FormatInt(b.Issued, 10)},
		}
	}
	errs := make([]error, len(list))
	for i, answer := range r.pipe.EvalEach(ctx, targets...) {
		err := answer.Err
		if err == nil && answer.Value == int64(1) {
			err = ErrRevoked
		}
		if err != nil {
			errs[i] = fmt.Errorf("token of user %s: %w", list[i].User, err)
		}
	}
	return errs
}

// RevokedSince returns users whose tokens were revoked, or whose subscriptions have changed, since
// an earlier call returned next, at most some minutes ago. For a client without a user it returns a
// name for AnonymousClient. since is 0 for the first call. Call it again while more is set.
func (r *Redis) RevokedSince(ctx context.Context, since int64) (users []string, next int64, more bool, err error) {
	cmd := redis.NewZSliceCmd(ctx, "zrange", r.keys.revokedList(), "("+strconv.FormatInt(since, 10), "+inf",
		"byscore", "limit", 0, revokedPage, "withscores")
	if err := r.pipe.Do(ctx, cmd); err != nil {
		return nil, since, false, fmt.Errorf("users with revoked tokens: %w", err)
	}
	next = since
	for _, entry := range cmd.Val() {
		user, _ := entry.Member.(string)
		users, next = append(users, user), max(next, int64(entry.Score))
	}
	return users, next, len(users) == revokedPage, nil
}

// RevokedBefore returns the time before which the tokens of a user were revoked for all clients,
// Unix ms; 0 for none.
func (r *Redis) RevokedBefore(ctx context.Context, user string) (int64, error) {
	cmd := redis.NewStringCmd(ctx, "get", r.keys.revoked(user, ""))
	if err := r.pipe.Do(ctx, cmd); err != nil && !errors.Is(err, redis.Nil) {
		return 0, fmt.Errorf("revoked tokens of user %s: %w", user, err)
	}
	before, _ := strconv.ParseInt(cmd.Val(), 10, 64)
	return before, nil
}
