package queue

import (
	"context"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
)

// ackGrouped is Ack for messages that may have groups. It withdraws the other copies from the
// queues of the user's other clients, and then deletes the groups of this client. If it fails in
// between, the next acknowledgement finds the groups again, and BindClients reports them.
func (r *Redis) ackGrouped(ctx context.Context, a Ack) (removed int64, err error) {
	record, groupsKey := r.keys.record(a.Client), r.keys.groups(a.Client)
	answer := r.pipe.EvalEach(ctx, r.ackTarget(a, append(r.clientKeys(a.Client), groupsKey)))[0]
	if n, refused := answer.Value.(int64); refused || answer.Err != nil {
		return n, answer.Err
	}
	acked := redispipe.ReplyOf(answer.Value)
	removed, to, user, groups := acked.Int(), acked.Text(), acked.Text(), acked.Rest()
	if err = acked.Err; err == nil {
		err = r.withdrawOthers(ctx, user, a.Client, groups)
	}
	if err == nil {
		_, err = r.pipe.Eval(ctx, deleteGroupsScript, []string{record, groupsKey}, to)
	}
	return removed, err
}

// withdrawOthers removes the messages of groups from the queues of the user's clients
// other than client.
func (r *Redis) withdrawOthers(ctx context.Context, user, client string, groups []string) error {
	if user == "" || len(groups) == 0 {
		return nil
	}
	clients := redis.NewStringSliceCmd(ctx, "hkeys", r.keys.userClients(user))
	if err := r.pipe.Do(ctx, clients); err != nil {
		return err
	}
	var targets []redispipe.Target
	for _, other := range clients.Val() {
		if other == client {
			continue
		}
		keys := append(r.clientKeys(other), r.keys.groups(other))
		for _, group := range groups {
			targets = append(targets, redispipe.Target{Script: r.withdraw, Keys: keys, Args: []any{group}})
		}
	}
	for _, answer := range r.pipe.EvalEach(ctx, targets...) {
		if answer.Err != nil {
			return answer.Err
		}
	}
	return nil
}
