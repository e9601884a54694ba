package room

import (
	"context"
	"fmt"
	"time"

	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// Left is the answer to a leave and a kick.
type Left struct {
	Room string `json:"room"`
	N    int    `json:"n"`
}

// kickedFor is how long a room knows which user had the number of a member that was kicked.
const kickedFor = time.Minute

// Leave ends the membership, or the reservation, of a user, for all of the user's devices. The
// subscriptions of the user end, too, also those of a user that is not in the room: a repeated call
// ends what an earlier one could not. For the backend, user names the user; a client leaves for
// itself. The error is not_found if the user is not in the room.
func (r *Rooms) Leave(ctx context.Context, a Actor, id, user string) (Left, error) {
	if !a.isBackend() {
		user = a.User
	}
	if err := checkUser(user); err != nil {
		return Left{}, err
	}
	const why = "the user has left the room"
	left, err := r.end(ctx, a, id, false, why, func(s *Snapshot) (*Member, error) {
		m := s.of(user)
		if m == nil {
			return nil, wire.Errorf(wire.NotFound, "room %s: the user is not in it", id)
		}
		return m, nil
	})
	if refused(err, wire.NotFound) {
		if err := r.unsubscribe(ctx, id, user, why); err != nil {
			return Left{}, err
		}
	}
	return left, err
}

// Kick ends the membership, or the reservation, with a number like Leave. Only the owner and the
// backend may do it. Repeated within a minute, it ends subscriptions that are left.
func (r *Rooms) Kick(ctx context.Context, a Actor, id string, n int) (Left, error) {
	const why = "the user was removed from the room"
	user := "" // that was kicked before
	left, err := r.end(ctx, a, id, true, why, func(s *Snapshot) (*Member, error) {
		if err := s.requireOwner(a); err != nil {
			return nil, err
		}
		m := s.member(n)
		if m == nil {
			if user = s.kicked[n]; s.of(user) != nil {
				user = "" // the user has joined again
			}
			return nil, wire.Errorf(wire.NotFound, "room %s: there is no member %d", id, n)
		}
		return m, nil
	})
	if refused(err, wire.NotFound) && user != "" {
		if err := r.unsubscribe(ctx, id, user, why); err != nil {
			return Left{}, err
		}
	}
	return left, err
}

// end deletes the field of a member, with its parts, and ends the subscriptions of its user. With
// asOwner, the store refuses it if the actor is not the owner any more, and the room remembers the
// user.
func (r *Rooms) end(ctx context.Context, a Actor, id string, asOwner bool, why string, find func(*Snapshot) (*Member, error)) (Left, error) {
	var m *Member
	_, _, err := r.change(ctx, a, id, func(s *Snapshot) (u *state.Update, err error) {
		if m, err = find(s); err != nil {
			return nil, err
		}
		u = a.update()
		u.If = []state.Condition{sameField(memberField(m.N), m.id)}
		u.Ops = []state.Op{{Field: memberField(m.N), Kind: state.Delete}}
		if asOwner {
			u.If = s.withOwner(a, u.If)
			u.Ops = append(u.Ops, state.Op{Field: kickedField(m.N), Kind: state.Set, Value: mustJSON(m.User), TTL: kickedFor})
		}
		return u, nil
	})
	if err != nil {
		return Left{}, err
	}
	if err := r.unsubscribe(ctx, id, m.User, why); err != nil {
		return Left{}, err
	}
	return Left{id, m.N}, nil
}

// unsubscribe ends the subscriptions of a user to a room.
func (r *Rooms) unsubscribe(ctx context.Context, id, user, why string) error {
	if err := r.host.Unsubscribe(ctx, user, Channel(id), wire.Errorf(wire.Forbidden, "%s", why)); err != nil {
		return fmt.Errorf("end the subscriptions of a user to room %s: %w", id, err)
	}
	return nil
}
