package room

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
)

// Left is the answer to a leave and a kick.
type Left struct {
	Room string `json:"room"`
	N    int    `json:"n"`
}

// KickedFor is how long a room knows which user had the number of a member that was kicked, and how
// long the user may not join again unless the kick says otherwise.
const KickedFor = time.Minute

// MaxKick is the longest time for which a kick keeps a user out.
const MaxKick = 24 * time.Hour

// KickRequest is the body of a kick.
type KickRequest struct {
	N int `json:"n" required:"true"`
	// TTLMS is how long the user may not join again, ms. Nil means KickedFor.
	TTLMS *int64 `json:"ttl_ms,omitempty"`
	// TTL is the former name of TTLMS, in seconds.
	TTL *int64 `json:"ttl,omitempty"`
}

// keepOut returns how long the user may not join again.
func (q KickRequest) keepOut() (time.Duration, error) {
	if q.TTLMS == nil && q.TTL == nil {
		return KickedFor, nil
	}
	var none int64
	return kit.TTL(*cmp.Or(q.TTLMS, &none), *cmp.Or(q.TTL, &none), MaxKick)
}

// checkBarred returns an error if a user was kicked and may not join yet.
func (s *Snapshot) checkBarred(user string) error {
	until, found := s.barred[barredField(user)]
	if !found {
		return nil
	}
	return wire.Errorf(wire.Forbidden, "room %s: the user was removed from it and may not join yet", s.ID).With(map[string]int64{"until": until})
}

// admitAgain adds to u that a user that was kicked may join again.
func (s *Snapshot) admitAgain(u *state.Update, user string) {
	if _, found := s.barred[barredField(user)]; found {
		u.Ops = append(u.Ops, kit.Delete(barredField(user)))
	}
}

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
	read := func() (*Snapshot, error) { return r.readMember(ctx, id, user, false) }
	left, err := r.end(ctx, a, id, read, nil, why, func(s *Snapshot) (*Member, error) {
		m := s.of(user)
		if m == nil {
			return nil, wire.Errorf(wire.NotFound, "room %s: the user is not in it", id)
		}
		return m, nil
	})
	if kit.HasCode(err, wire.NotFound) {
		if err := r.unsubscribe(ctx, id, user, why); err != nil {
			return Left{}, err
		}
	}
	return left, err
}

// Kick is KickFor with KickedFor.
func (r *Rooms) Kick(ctx context.Context, a Actor, id string, n int) (Left, error) {
	return r.KickFor(ctx, a, id, KickRequest{N: n})
}

// KickFor ends the membership, or the reservation, with a number like Leave. The user may not join
// again for a time, unless the backend joins or reserves for it. Only the owner and the backend may
// do it. Repeated within KickedFor, it ends subscriptions that are left.
func (r *Rooms) KickFor(ctx context.Context, a Actor, id string, q KickRequest) (Left, error) {
	keepOut, err := q.keepOut()
	if err != nil {
		return Left{}, err
	}
	n := q.N
	const why = "the user was removed from the room"
	user := "" // that was kicked before
	read := func() (*Snapshot, error) { return r.readOwner(ctx, a, id, n) }
	left, err := r.end(ctx, a, id, read, &keepOut, why, func(s *Snapshot) (*Member, error) {
		if err := s.requireOwner(a); err != nil {
			return nil, err
		}
		m := s.member(n)
		if m == nil {
			user = s.kicked[n]
			return nil, wire.Errorf(wire.NotFound, "room %s: there is no member %d", id, n)
		}
		return m, nil
	})
	if kit.HasCode(err, wire.NotFound) && user != "" {
		if err := r.kickAgain(ctx, id, user, why); err != nil {
			return Left{}, err
		}
	}
	return left, err
}

// kickAgain ends the subscriptions of a user that was kicked, unless the user has joined again.
func (r *Rooms) kickAgain(ctx context.Context, id, user, why string) error {
	s, err := r.readMember(ctx, id, user, false)
	if err != nil || s.of(user) != nil {
		return err
	}
	return r.unsubscribe(ctx, id, user, why)
}

// end deletes the field of a member, with its parts, and ends the subscriptions of its user. read
// returns the room, with this member in full. kick
// is how long a kick keeps the user out, nil for a leave. The store refuses a kick if the actor is
// not the owner any more, and the room remembers the user.
func (r *Rooms) end(ctx context.Context, a Actor, id string, read reader, kick *time.Duration, why string, find func(*Snapshot) (*Member, error)) (Left, error) {
	var m *Member
	_, _, err := r.change(ctx, a, id, read, func(s *Snapshot) (u *state.Update, err error) {
		if m, err = find(s); err != nil {
			return nil, err
		}
		u = a.update()
		u.If = []state.Condition{kit.Same(memberField(m.N), m.id)}
		u.Ops = []state.Op{kit.Delete(memberField(m.N))}
		if kick == nil {
			return u, nil
		}
		u.If = s.withOwner(a, u.If)
		u.Ops = append(u.Ops, state.Op{Field: kickedField(m.N), Kind: state.Set, Value: kit.JSON(m.User), TTL: KickedFor})
		if *kick > 0 {
			u.Ops = append(u.Ops, state.Op{Field: barredField(m.User), Kind: state.Set, Value: kit.JSON(m.N), TTL: *kick})
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
