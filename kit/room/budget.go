package room

import (
	"context"
	"fmt"

	"switchboard/kit/budget"
	"switchboard/queue"
)

// newBudget returns the budget of the rooms that users make. A room is charged to its user until
// it ends, also if the user leaves it.
func (r *Rooms) newBudget() *budget.Budget {
	return budget.New(budget.Options{
		Store: r.opts.Budget, Kind: "rooms", Setting: "kit.rooms.per_user", Most: r.opts.PerUser,
		Ended: func(ctx context.Context, user string, ids []string) (ended []string, err error) {
			reads := make([]queue.StateRead, len(ids))
			for i, id := range ids {
				reads[i] = queue.StateRead{Channel: Channel(id), Fields: []string{fieldCreator}, Brief: true}
			}
			for i, page := range r.host.ReadStates(ctx, reads) {
				if page.Err != nil {
					return nil, fmt.Errorf("read room %s: %w", ids[i], page.Err)
				}
				fields := page.Value.Fields
				if len(fields) == 0 || string(fields[0].Value) != string(mustJSON(user)) {
					ended = append(ended, ids[i])
				}
			}
			return ended, nil
		},
	})
}

// isCharged reports whether the rooms that the actor makes are charged to its user.
func (a Actor) isCharged() bool { return !a.isBackend() && !a.free }

// charge charges a room that is about to be made. undo returns it if the room is not made.
func (r *Rooms) charge(ctx context.Context, a Actor, id string) (undo func(), err error) {
	if !a.isCharged() {
		return func() {}, nil
	}
	fresh, err := r.budget.Charge(ctx, a.User, id)
	return func() {
		if fresh {
			r.uncharge(context.WithoutCancel(ctx), id, a.User)
		}
	}, err
}

// uncharge returns a room that has ended to the budget of the user that made it. "" means none.
func (r *Rooms) uncharge(ctx context.Context, id, user string) {
	if user == "" {
		return
	}
	if err := r.budget.Return(ctx, user, id); err != nil {
		log := r.host.Logger()
		log.Warn().Err(err).Str("room", id).Msg("the budget of a user has the room until it is spent")
	}
}
