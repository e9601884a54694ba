package queue

import (
	"context"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
)

// ackFirst is Ack where some of the messages may be of groups: what those put into the queues of the user's other clients is
// withdrawn, and then the groups are forgotten here. When it breaks off in between, the groups are found again by the next
// acknowledgement, the same one repeated for instance, and by BindClients, which says so.
func (r *Redis) ackFirst(ctx context.Context, a Ack) (removed int64, err error) {
	record, firsts := r.keys.record(a.Client), r.keys.firsts(a.Client)
	answer := r.pipe.EvalEach(ctx, r.acknowledgement(a, append(r.clientKeys(a.Client), firsts)))[0]
	if n, refused := answer.Value.(int64); refused || answer.Err != nil {
		return n, answer.Err
	}
	acked, err := array(answer.Value)
	if err != nil {
		return 0, err
	}
	removed, to, user := acked.integer(), acked.text(), acked.text()
	var groups []string
	for acked.err == nil && len(acked.rest) > 0 {
		groups = append(groups, acked.text())
	}
	if err = acked.err; err == nil {
		err = r.withdrawOthers(ctx, user, a.Client, groups)
	}
	if err == nil {
		_, err = r.eval(ctx, forgetScript, []string{record, firsts}, to)
	}
	return removed, err
}

// withdrawOthers takes the messages of groups out of the queues of the user's clients but for one. Those that have none of
// them, or have it no more, stay as they are.
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
		keys := append(r.clientKeys(other), r.keys.firsts(other))
		for _, group := range groups {
			targets = append(targets, redispipe.Target{Group: r.withdraw, Keys: keys, Args: []any{group}})
		}
	}
	for _, answer := range r.pipe.EvalEach(ctx, targets...) {
		if answer.Err != nil {
			return answer.Err
		}
	}
	return nil
}
