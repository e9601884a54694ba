package room

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"switchboard/broker/session"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
)

// Room is the document of a room: the value of the field $room, which is shown to all readers of
// the room. Times are Unix milliseconds, 0 for never.
type Room struct {
	Name       string     `json:"name,omitempty"`
	Mode       string     `json:"mode"`
	Visibility Visibility `json:"visibility"`
	Status     Status     `json:"status"`
	Region     string     `json:"region,omitempty"`
	// Locked refuses new members. Members and reservations may still join with another device.
	Locked bool `json:"locked,omitempty"`
	// Capacity is the most members and reservations, within the Capacity of the mode.
	Capacity   int             `json:"capacity"`
	Created    int64           `json:"created"`
	Started    int64           `json:"started,omitempty"`
	Finished   int64           `json:"finished,omitempty"`
	AppVersion string          `json:"app_version,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"`
}

// Visibility says which users may read a room and find it in lists.
type Visibility string

// The visibilities.
const (
	Public  Visibility = "public"  // all users, unless Mode.MembersOnly
	Private Visibility = "private" // members only; joining needs the code
)

// Status is the phase of a room. It only goes forward.
type Status string

// The statuses.
const (
	Waiting  Status = "waiting"
	Playing  Status = "playing"
	Finished Status = "finished"
)

// View is a room as the calls return it.
type View struct {
	ID      string `json:"id"`
	Channel string `json:"channel"`
	// Version is the id of the last change of the document, for a patch.
	Version int64        `json:"version"`
	Room    Room         `json:"room"`
	Owner   int          `json:"owner,omitempty"` // number of the owner, if there is a member
	Members []MemberView `json:"members"`         // by number, with reservations
	// N is the number of the caller, if it is a member.
	N int `json:"n,omitempty"`
	// Code is the code of a private room, for the owner and the backend.
	Code string `json:"code,omitempty"`
	// OwnerUser is the user that is named as the owner, for the backend.
	OwnerUser string `json:"owner_user,omitempty"`
}

// MemberView is a member of a View.
type MemberView struct {
	N        int    `json:"n"`
	Nickname string `json:"nickname,omitempty"`
	Joined   int64  `json:"joined,omitempty"` // Unix ms
	Reserved bool   `json:"reserved,omitempty"`
	Away     bool   `json:"away,omitempty"`
	Until    int64  `json:"until,omitempty"` // when the place ends, Unix ms
	User     string `json:"user,omitempty"`  // for the backend
}

// view returns the room as the actor sees it. Only the backend sees users.
func (s *Snapshot) view(a Actor) View {
	v := View{ID: s.ID, Channel: Channel(s.ID), Version: s.Version, Room: s.Room, Owner: s.Owner, Members: []MemberView{}}
	for _, m := range s.Members {
		shown := MemberView{N: m.N, Nickname: m.Nickname, Joined: m.Joined, Reserved: m.Reserved, Away: m.Away, Until: m.Until}
		if a.isBackend() {
			shown.User = m.User
		} else if m.User == a.User {
			v.N = m.N
		}
		v.Members = append(v.Members, shown)
	}
	if a.isBackend() {
		v.OwnerUser = s.OwnerUser
	}
	if a.isBackend() || v.N != 0 && v.N == s.Owner {
		v.Code = s.Code
	}
	return v
}

// Get returns a room. A client may get the rooms that it may subscribe to; the error for others is
// forbidden.
func (r *Rooms) Get(ctx context.Context, a Actor, id string) (View, error) {
	admit := func(s *Snapshot) error {
		if !a.isBackend() && !s.mayRead(a.User, r.mode(s).MembersOnly) {
			return errMembersOnly(id)
		}
		return nil
	}
	s, err := r.readAs(ctx, a, id, admit)
	if err == nil {
		err = admit(s)
	}
	if err != nil {
		return View{}, err
	}
	return s.view(a), nil
}

// mayRead reports whether a user may read the room. A reservation does not count.
func (s *Snapshot) mayRead(user string, membersOnly bool) bool {
	return s.isOpen(membersOnly) || s.isPlayer(user)
}

// isPlayer reports whether a user is a member, and not only has a reservation.
func (s *Snapshot) isPlayer(user string) bool {
	m := s.of(user)
	return m != nil && !m.Reserved
}

// isOpen reports whether all users may read the room.
func (s *Snapshot) isOpen(membersOnly bool) bool { return s.Room.Visibility == Public && !membersOnly }

func errMembersOnly(id string) error {
	return wire.Errorf(wire.Forbidden, "room %s: only members that have joined may read it", id)
}

// Actor is the caller of an operation. The zero Actor is the backend, which may do everything.
type Actor struct {
	// User is the user of the connection.
	User string

	caller session.Caller // of a request of a client
	// trusted means that the backend acts for the client: a private room needs no code.
	trusted bool
	// free means that the backend makes a room for the user, which is not charged.
	free bool
	// placed means that a search has reserved the place, see [index.Search]: the card of the room may
	// be late.
	placed bool
}

// Backend is the actor of HTTP calls.
var Backend = Actor{}

// actorOf returns the actor of a request. Rooms know users only.
func actorOf(c session.Caller) (Actor, error) {
	if c.User == "" {
		return Actor{}, wire.Errorf(wire.Forbidden, "a client without a user cannot use rooms")
	}
	return Actor{User: c.User, caller: c}, checkUser(c.User)
}

// isBackend reports whether the actor is the backend.
func (a Actor) isBackend() bool { return a.User == "" }

// checkUser returns an error if the fields of a user would not have valid names.
func checkUser(user string) error {
	if err := wire.CheckName("user", user); err != nil {
		return err
	}
	if err := state.CheckName(userField(user)); err != nil {
		return wire.Errorf(wire.BadRequest, "user: the name is too long for a room: its escaped form has more than %d bytes",
			state.MaxName-len(groupUser))
	}
	return nil
}

// update returns an update of the actor, which the store refuses if the connection of the actor has
// ended or was replaced.
func (a Actor) update() *state.Update {
	u := &state.Update{Writer: state.BackendHolder}
	if !a.isBackend() {
		u.Client, u.Generation, u.Server = a.caller.Client, a.caller.Generation, a.caller.Server
		u.ByField = userField(a.User)
	}
	return u
}

// own calls change with the connection of the actor, which becomes an owner.
func (a Actor) own(ctx context.Context, id string, change func(state.Connection) error) error {
	return a.caller.Own(ctx, Channel(id), change)
}

// requireOwner returns an error unless the actor is the backend or the owner of the room.
func (s *Snapshot) requireOwner(a Actor) error {
	if a.isBackend() {
		return nil
	}
	if m := s.of(a.User); m == nil || m.N != s.Owner {
		return errNotOwner(s.ID)
	}
	return nil
}

func errNotOwner(id string) error {
	return wire.Errorf(wire.Forbidden, "room %s: only its owner may do this", id)
}

// withOwner adds the conditions under which the owner of the snapshot is still the owner. The
// backend needs no conditions.
func (s *Snapshot) withOwner(a Actor, list []state.Condition) []state.Condition {
	if a.isBackend() {
		return list
	}
	for _, c := range s.ownerConditions() {
		if !slices.ContainsFunc(list, func(o state.Condition) bool { return o.Field == c.Field }) {
			list = append(list, c)
		}
	}
	return list
}

// ownerConditions returns the conditions. Numbers only grow, so a member with a lower one can only
// come if a user takes a reserved place, which changes $$taken.
func (s *Snapshot) ownerConditions() []state.Condition {
	owner := s.member(s.Owner)
	list := []state.Condition{kit.Same(fieldOwner, s.ownerID), kit.Same(memberField(s.Owner), owner.id)}
	if owner.User == s.OwnerUser {
		return list
	}
	if s.OwnerUser != "" {
		list = append(list, kit.Same(userField(s.OwnerUser), 0))
	}
	return append(list, kit.Same(fieldTaken, s.takenID))
}

// The names of fields of one member.
func memberField(n int) string         { return groupMember + strconv.Itoa(n) }
func kickedField(n int) string         { return groupKicked + strconv.Itoa(n) }
func numberField(n int) string         { return groupNumber + strconv.Itoa(n) }
func userField(user string) string     { return groupUser + state.Escape(user) }
func reservedField(user string) string { return groupReserved + state.Escape(user) }
func barredField(user string) string   { return groupBarred + state.Escape(user) }
func numberMark(i int) string          { return "{n" + strconv.Itoa(i) + "}" }

// place is a new member or reservation.
type place struct {
	user, nickname string
	reserve        time.Duration // of a reservation, else 0
	mark           string        // {n}, {n2}, ...
}

// ops returns the operations that make a new member: the field and its two hidden parts, which end
// with it. The user holds the field, and therefore its parts p/{n}/*. The number of a player is in
// another field than that of a reservation: the rule of the channel lets users publish, and shows
// them in the presence, by the field of players.
func (r *Rooms) ops(s *Snapshot, p place) []state.Op {
	number := userField(p.user)
	member := state.Op{
		Field: groupMember + p.mark, Kind: state.Set, Holder: state.UserHolder(p.user), GroupMax: s.Room.Capacity,
	}
	if p.reserve > 0 {
		member.Value, member.TTL = kit.JSON(memberValue{Nickname: p.nickname, Reserved: true}), p.reserve
		number = reservedField(p.user)
	} else {
		member.Value = r.memberJSON(p.nickname)
		member.Own, member.Grace = state.Own, r.mode(s).Grace
	}
	return []state.Op{
		member,
		{Field: number, Kind: state.Set, Value: []byte(`"` + p.mark + `"`), Numbered: true, Parent: member.Field},
		{Field: groupNumber + p.mark, Kind: state.Set, Value: kit.JSON(p.user), Parent: member.Field},
	}
}

// isNew returns the conditions that a user is neither a player nor has a reservation.
func isNew(user string) []state.Condition {
	return []state.Condition{kit.Same(userField(user), 0), kit.Same(reservedField(user), 0)}
}

// memberJSON returns the value of the field of a player that joins now.
func (r *Rooms) memberJSON(nickname string) []byte {
	return kit.JSON(memberValue{Nickname: nickname, Joined: r.host.Now().UnixMilli()})
}

// mode returns the mode of a room. A room whose mode is no longer configured has the defaults.
func (r *Rooms) mode(s *Snapshot) Mode {
	if m, ok := r.opts.Modes[s.Room.Mode]; ok {
		return m
	}
	return Mode{}.withDefaults()
}

// maxNickname is the longest nickname, in bytes.
const maxNickname = 64

// checkText returns an error if a text is too long or has control characters.
func checkText(kind, text string, most int) error {
	if len(text) > most || !utf8.ValidString(text) {
		return wire.Errorf(wire.BadRequest, "%s: at most %d bytes of UTF-8 are allowed", kind, most)
	}
	for _, c := range text {
		if unicode.IsControl(c) {
			return wire.Errorf(wire.BadRequest, "%s: the character %q is not allowed", kind, c)
		}
	}
	return nil
}

// counts are the values that an error shows when a room is full.
type counts struct {
	Members  int `json:"members"`
	Reserved int `json:"reserved"`
	Capacity int `json:"capacity"`
}

func (c counts) taken() int { return c.Members + c.Reserved }

// counts counts the members that the snapshot has.
func (s *Snapshot) counts() counts {
	players := len(s.Players())
	return counts{players, len(s.Members) - players, s.Room.Capacity}
}

// admit returns an error if the room takes no new members, n of them.
func (s *Snapshot) admit(n int) error {
	switch {
	case s.Room.Status == Finished:
		return wire.Errorf(wire.Locked, "room %s: it has finished", s.ID)
	case s.Room.Locked:
		return wire.Errorf(wire.Locked, "room %s: it is locked", s.ID)
	case s.held.taken()+n > s.Room.Capacity:
		return wire.Errorf(wire.Full, "room %s: it has %d of %d places taken", s.ID, s.held.taken(), s.Room.Capacity).With(s.held)
	}
	return nil
}
