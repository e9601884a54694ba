package room

import (
	"context"

	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// Delete ends a room, with the memberships and all of its fields, and the subscriptions of the
// members. If version is not 0, the room must have it, else the error is conflict. Only the backend
// deletes rooms.
func (r *Rooms) Delete(ctx context.Context, id string, version int64) error {
	return r.remove(ctx, id, ReasonDeleted, func(s *Snapshot) error {
		if version != 0 && version != s.Version {
			return &wire.DetailedError{
				Err: wire.Errorf(wire.Conflict, "room %s: its version is %d", id, s.Version), Data: s.view(Backend),
			}
		}
		return nil
	})
}

// planDelete returns the update that removes a room with the document and the members of the
// snapshot. The counter in the conditions keeps a member that joins meanwhile from being removed
// unseen. Shared fields that a member sets meanwhile stay; the next room with the id removes them.
func (r *Rooms) planDelete(ctx context.Context, s *Snapshot, why Reason) (*state.Update, error) {
	u := Backend.update()
	u.If = []state.Condition{sameField(fieldRoom, s.Version), sameField(fieldNext, s.nextID)}
	all := r.host.ReadStates(ctx, []queue.StateRead{{Channel: Channel(s.ID)}})[0]
	for _, f := range all.Value.Fields {
		switch {
		case f.Name == fieldEnded:
			if err := r.sendEnded(ctx, s.ID, f); err != nil {
				return nil, err
			}
		case f.Parent == "":
			u.Ops = append(u.Ops, state.Op{Field: f.Name, Kind: state.Delete})
		}
	}
	r.addEnded(u, s, why, all.Value.Fields)
	return u, all.Err
}
