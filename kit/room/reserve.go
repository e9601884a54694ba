package room

import (
	"cmp"
	"context"
	"time"

	"switchboard/broker/delivery"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
)

// ReserveRequest is the body of a reservation.
type ReserveRequest struct {
	Users []string `json:"users" required:"true"`
	// TTLMS is how long the places wait for their users, ms. Zero means Mode.Reserve.
	TTLMS int64 `json:"ttl_ms,omitempty"`
	// TTL is the former name of TTLMS, in seconds.
	TTL int64 `json:"ttl,omitempty"`
}

// Reservation is the numbers of users in a room.
type Reservation struct {
	Room    string         `json:"room"`
	Numbers map[string]int `json:"numbers"` // by user
}

// Reserve takes places for several users, all or nothing. A place that is reserved counts as taken,
// and its user keeps the number at join. A user that was kicked may join again. Users that are
// members keep their number; those that have a reservation keep it for the new time. The errors are
// not_found, locked and full.
func (r *Rooms) Reserve(ctx context.Context, id string, q ReserveRequest) (Reservation, error) {
	return r.reserve(ctx, Backend, id, q)
}

func (r *Rooms) reserve(ctx context.Context, a Actor, id string, q ReserveRequest) (Reservation, error) {
	users, err := q.check()
	var asked time.Duration
	if err == nil {
		asked, err = kit.TTL(q.TTLMS, q.TTL, MaxReserve)
	}
	if err != nil {
		return Reservation{}, err
	}
	var fresh []string
	numbers := make(map[string]int, len(users))
	_, result, err := r.change(ctx, a, id, r.whole(ctx, id), func(s *Snapshot) (*state.Update, error) {
		fresh = fresh[:0]
		ttl := cmp.Or(asked, r.mode(s).Reserve)
		u := Backend.update()
		u.If = []state.Condition{sameField(fieldRoom, s.Version)}
		for _, user := range users {
			m := s.of(user)
			if m == nil {
				if err := s.checkBarred(user); err != nil && a.placed { // the caller has not chosen the room
					return nil, err
				}
				fresh = append(fresh, user)
				u.If = append(u.If, isNew(user)...)
				s.admitAgain(u, user)
				continue
			}
			numbers[user] = m.N
			u.If = append(u.If, sameField(memberField(m.N), m.id))
			if m.Reserved {
				u.Ops = append(u.Ops, state.Op{Field: memberField(m.N), Kind: state.Touch, TTL: ttl})
			}
		}
		if len(fresh) > 0 {
			if err := s.admit(len(fresh)); err != nil {
				return nil, err
			}
			r.addReserved(s, u, fresh, ttl)
		}
		if len(u.Ops) == 0 {
			return nil, nil
		}
		return u, nil
	})
	if err != nil {
		return Reservation{}, err
	}
	addNumbers(numbers, fresh, result)
	return Reservation{Room: id, Numbers: numbers}, nil
}

// addReserved adds the operations for new reservations.
func (r *Rooms) addReserved(s *Snapshot, u *state.Update, users []string, ttl time.Duration) {
	u.Counter, u.Take = fieldNext, len(users)
	for i, user := range users {
		mark := "{n}"
		if i > 0 {
			mark = numberMark(i + 1)
		}
		u.Ops = append(u.Ops, r.ops(s, place{user: user, reserve: ttl, mark: mark})...)
	}
}

// addNumbers adds the numbers that new reservations have got.
func addNumbers(numbers map[string]int, users []string, result delivery.ChannelResult) {
	first := int(result.Numbers[fieldNext]) - len(users) + 1
	for i, user := range users {
		numbers[user] = first + i
	}
}

// check returns the users, each once.
func (q ReserveRequest) check() (users []string, err error) {
	seen := make(map[string]bool, len(q.Users))
	for _, user := range q.Users {
		if err := checkUser(user); err != nil {
			return nil, err
		}
		if !seen[user] {
			seen[user] = true
			users = append(users, user)
		}
	}
	if len(users) == 0 || len(users) > state.MaxTake {
		return nil, wire.Errorf(wire.BadRequest, "users: between 1 and %d are allowed", state.MaxTake)
	}
	return users, nil
}
