package room

import (
	"cmp"
	"context"
	"crypto/subtle"
	"slices"
	"strconv"
	"time"

	"switchboard/broker/delivery"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/registry"
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
	u.If = append(isNew(a.User), kit.Same(fieldRoom, s.Version))
	u.Ops = r.ops(s, place{user: a.User, nickname: q.Nickname, mark: "{n}"})
	if a.trusted {
		s.admitAgain(u, a.User)
	} else {
		u.If = append(u.If, kit.Same(barredField(a.User), 0))
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
	u.If = []state.Condition{kit.Same(fieldRoom, s.Version), kit.Same(memberField(m.N), m.id)}
	u.Ops = []state.Op{{
		Field: memberField(m.N), Kind: state.Set, Value: r.memberJSON(q.Nickname), Holder: state.UserHolder(a.User),
		Own: state.Own, Grace: r.mode(s).Grace,
	}, {
		Field: userField(a.User), Kind: state.Set, Value: kit.JSON(strconv.Itoa(m.N)), Parent: memberField(m.N),
	}, {
		Field: reservedField(a.User), Kind: state.Delete,
	}, {
		Field: fieldTaken, Kind: state.Set, Value: kit.JSON(m.N),
	}}
	return u, nil
}

// planDevice plans that one more connection of a member becomes an owner of the membership. The
// touch keeps the id of the field.
func (r *Rooms) planDevice(s *Snapshot, a Actor, m *Member) *state.Update {
	u := a.update()
	u.If = []state.Condition{kit.Same(memberField(m.N), m.id)}
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

// JoinForRequest is the body of a join by the backend.
type JoinForRequest struct {
	User string `json:"user" required:"true"`
	// Client is a connected client of the user, without the user's name. Zero means that the place is
	// reserved until a client joins.
	Client   string `json:"client,omitempty"`
	Nickname string `json:"nickname,omitempty"`
	// TTLMS is how long a reservation waits, ms. Zero means Mode.Reserve.
	TTLMS int64 `json:"ttl_ms,omitempty"`
	// TTL is the former name of TTLMS, in seconds.
	TTL int64 `json:"ttl,omitempty"`
}

// The names of the calls that join for a client on the server of its connection.
const (
	joinClient  = "room.join"
	quickClient = "room.quick"
)

// JoinFor is Join for the client of a user, in the name of the backend: a private room needs no
// code. Without a client it is Reserve for one user. A client that is not connected is not_found.
func (r *Rooms) JoinFor(ctx context.Context, id string, q JoinForRequest) (j Joined, err error) {
	if q.Client == "" {
		return r.reserveOne(ctx, Backend, id, q)
	}
	if err := checkUser(q.User); err != nil {
		return Joined{}, err
	}
	err = r.callClient(ctx, q.User, q.Client, joinClient, JoinRequest{Room: id, Nickname: q.Nickname}, &j)
	return j, err
}

// callClient makes a call in the name of a client of the user, on the server of its connection.
func (r *Rooms) callClient(ctx context.Context, user, name, call string, in any, j *Joined) error {
	bindings, err := r.host.User(ctx, user)
	if err != nil {
		return err
	}
	client := wire.ClientID(user, name)
	i := slices.IndexFunc(bindings, func(b registry.Binding) bool { return b.Client == client && b.Server != "" })
	if i < 0 {
		return wire.Errorf(wire.NotFound, "client: it is not connected")
	}
	return r.host.CallAs(ctx, bindings[i].Server, client, call, in, j)
}

// reserveOne is Reserve for one user.
func (r *Rooms) reserveOne(ctx context.Context, a Actor, id string, q JoinForRequest) (Joined, error) {
	done, err := r.reserve(ctx, a, id, ReserveRequest{Users: []string{q.User}, TTLMS: q.TTLMS, TTL: q.TTL})
	if err != nil {
		return Joined{}, err
	}
	s, err := r.Read(ctx, id)
	if err != nil {
		return Joined{}, err
	}
	j := Joined{Room: id, Channel: Channel(id), N: done.Numbers[q.User], Reserved: true}
	if m := s.member(j.N); m != nil && !m.Reserved {
		j.Already, j.Reserved = true, false
	}
	return j, nil
}

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
		u.If = []state.Condition{kit.Same(fieldRoom, s.Version)}
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
			u.If = append(u.If, kit.Same(memberField(m.N), m.id))
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
