package room

import (
	"context"
	"crypto/subtle"
	"strconv"

	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
)

// JoinRequest is the data of room.join.
type JoinRequest struct {
	Room     string `json:"room" required:"true"`
	Nickname string `json:"nickname,omitempty"`
	// Code is that of a private room. Members, reservations and the backend need none.
	Code string `json:"code,omitempty"`
}

// Joined is the answer to a join.
type Joined struct {
	Room    string `json:"room"`
	Channel string `json:"channel"`
	N       int    `json:"n"` // the number of the player
	// Already is set if the user was a member before: the connection is one more device.
	Already bool `json:"already,omitempty"`
	// Reserved is set if the place is only reserved.
	Reserved bool `json:"reserved,omitempty"`
}

// Join makes the user of a connection a member of a room, with the connection as an owner of the
// membership. A user that is a member keeps the number, and so does a reservation. The errors are
// not_found, forbidden for a user that was kicked, whose data has `until`, bad_code, locked (also
// if the room has finished), and full, whose data has `members`, `reserved` and `capacity`.
func (r *Rooms) Join(ctx context.Context, a Actor, q JoinRequest) (Joined, error) {
	if err := checkText("nickname", q.Nickname, maxNickname); err != nil {
		return Joined{}, err
	}
	if a.isBackend() {
		return Joined{}, wire.Errorf(wire.BadRequest, "the backend joins for a client")
	}
	return kit.Retry(ctx, "room "+q.Room, func() (Joined, error) { return r.tryJoin(ctx, a, q) })
}

// tryJoin joins once. It does not read the other members: the store counts them.
func (r *Rooms) tryJoin(ctx context.Context, a Actor, q JoinRequest) (j Joined, err error) {
	s, err := r.readMember(ctx, q.Room, a.User, true)
	if err != nil {
		return Joined{}, err
	}
	j = Joined{Room: q.Room, Channel: Channel(q.Room)}
	var u *state.Update
	switch m := s.of(a.User); {
	case m == nil:
		u, err = r.planJoin(s, a, q)
	case m.Reserved:
		j.N = m.N
		u, err = r.planTakeReserved(s, a, m, q)
	default:
		j.N, j.Already = m.N, true
		u = r.planDevice(s, a, m)
	}
	if err != nil {
		return Joined{}, err
	}
	result, err := r.apply(ctx, a, q.Room, u)
	if isStale(err) {
		return Joined{}, kit.ErrChanged
	}
	if n, found := result.Numbers[fieldNext]; found {
		j.N = int(n)
	}
	return j, err
}

// planJoin plans a new member.
func (r *Rooms) planJoin(s *Snapshot, a Actor, q JoinRequest) (*state.Update, error) {
	if err := s.checkBarred(a.User); err != nil && !a.trusted {
		return nil, err
	}
	if err := s.checkCode(a, q.Code); err != nil {
		return nil, err
	}
	if err := s.admit(1); err != nil {
		return nil, err
	}
	u := a.update()
	u.Counter = fieldNext
	u.If = append(isNew(a.User), sameField(fieldRoom, s.Version))
	u.Ops = r.ops(s, place{user: a.User, nickname: q.Nickname, mark: "{n}"})
	if a.trusted {
		s.admitAgain(u, a.User)
	} else {
		u.If = append(u.If, sameField(barredField(a.User), 0))
	}
	return u, nil
}

// planTakeReserved plans that the user takes the reserved place. It needs neither code nor place,
// also in a locked room. The number moves to the field of players.
func (r *Rooms) planTakeReserved(s *Snapshot, a Actor, m *Member, q JoinRequest) (*state.Update, error) {
	if s.Room.Status == Finished {
		return nil, s.admit(0)
	}
	if q.Nickname == "" {
		q.Nickname = m.Nickname
	}
	u := a.update()
	u.If = []state.Condition{sameField(fieldRoom, s.Version), sameField(memberField(m.N), m.id)}
	u.Ops = []state.Op{{
		Field: memberField(m.N), Kind: state.Set, Value: r.memberJSON(q.Nickname), Holder: state.UserHolder(a.User),
		Own: state.Own, Grace: r.mode(s).Grace,
	}, {
		Field: userField(a.User), Kind: state.Set, Value: mustJSON(strconv.Itoa(m.N)), Parent: memberField(m.N),
	}, {
		Field: reservedField(a.User), Kind: state.Delete,
	}, {
		Field: fieldTaken, Kind: state.Set, Value: mustJSON(m.N),
	}}
	return u, nil
}

// planDevice plans that one more connection of a member becomes an owner of the membership. The
// touch keeps the id of the field.
func (r *Rooms) planDevice(s *Snapshot, a Actor, m *Member) *state.Update {
	u := a.update()
	u.If = []state.Condition{sameField(memberField(m.N), m.id)}
	u.Ops = []state.Op{{Field: memberField(m.N), Kind: state.Touch, Own: state.Own, Grace: r.mode(s).Grace}}
	return u
}

// checkCode returns an error unless the room is public, or the code is right.
func (s *Snapshot) checkCode(a Actor, code string) error {
	if s.Room.Visibility == Public || a.trusted || s.Code != "" && subtle.ConstantTimeCompare([]byte(code), []byte(s.Code)) == 1 {
		return nil
	}
	return wire.Errorf(wire.BadCode, "room %s: the code is wrong", s.ID)
}
