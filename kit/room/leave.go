package room

import (
	"context"
	"fmt"

	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// Left is the answer to a leave and a kick.
type Left struct {
	Room string `json:"room"`
	N    int    `json:"n"`
}

// Leave ends the membership, or the reservation, of a user, for all of the user's devices. The
// subscriptions of the user end, too. For the backend, user names the user; a client leaves for
// itself. The error is not_found if the user is not in the room.
func (r *Rooms) Leave(ctx context.Context, a Actor, id, user string) (Left, error) {
	if !a.isBackend() {
		user = a.User
	}
	if err := checkUser(user); err != nil {
		return Left{}, err
	}
	return r.end(ctx, a, id, false, "the user has left the room", func(s *Snapshot) (*Member, error) {
		m := s.of(user)
		if m == nil {
			return nil, wire.Errorf(wire.NotFound, "room %s: the user is not in it", id)
		}
		return m, nil
	})
}

// Kick ends the membership, or the reservation, with a number like Leave. Only the owner and the
// backend may do it.
func (r *Rooms) Kick(ctx context.Context, a Actor, id string, n int) (Left, error) {
	return r.end(ctx, a, id, true, "the user was removed from the room", func(s *Snapshot) (*Member, error) {
		if err := s.requireOwner(a); err != nil {
			return nil, err
		}
		m := s.member(n)
		if m == nil {
			return nil, wire.Errorf(wire.NotFound, "room %s: there is no member %d", id, n)
		}
		return m, nil
	})
}

// end deletes the field of a member, with its parts, and ends the subscriptions of its user. With
// asOwner, the store refuses it if the actor is not the owner any more.
func (r *Rooms) end(ctx context.Context, a Actor, id string, asOwner bool, why string, find func(*Snapshot) (*Member, error)) (Left, error) {
	var m *Member
	_, _, err := r.change(ctx, a, id, func(s *Snapshot) (u *state.Update, err error) {
		if m, err = find(s); err != nil {
			return nil, err
		}
		u = a.update()
		u.If = []state.Condition{sameField(memberField(m.N), m.id)}
		if asOwner {
			u.If = s.withOwner(a, u.If)
		}
		u.Ops = []state.Op{{Field: memberField(m.N), Kind: state.Delete}}
		return u, nil
	})
	if err != nil {
		return Left{}, err
	}
	if err := r.host.Unsubscribe(ctx, m.User, Channel(id), wire.Errorf(wire.Forbidden, "%s", why)); err != nil {
		return Left{}, fmt.Errorf("end the subscriptions of member %d of room %s: %w", m.N, id, err)
	}
	return Left{id, m.N}, nil
}
