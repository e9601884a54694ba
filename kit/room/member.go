package room

import (
	"encoding/json"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// The names of fields of one member.
func memberField(n int) string         { return groupMember + strconv.Itoa(n) }
func kickedField(n int) string         { return groupKicked + strconv.Itoa(n) }
func numberField(n int) string         { return groupNumber + strconv.Itoa(n) }
func userField(user string) string     { return groupUser + state.Escape(user) }
func reservedField(user string) string { return groupReserved + state.Escape(user) }
func barredField(user string) string   { return groupBarred + state.Escape(user) }
func numberMark(i int) string          { return "{n" + strconv.Itoa(i) + "}" }
func mustJSON(v any) json.RawMessage   { data, _ := json.Marshal(v); return data } // of types without errors

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
		member.Value, member.TTL = mustJSON(memberValue{Nickname: p.nickname, Reserved: true}), p.reserve
		number = reservedField(p.user)
	} else {
		member.Value = r.memberJSON(p.nickname)
		member.Own, member.Grace = state.Own, r.mode(s).Grace
	}
	return []state.Op{
		member,
		{Field: number, Kind: state.Set, Value: []byte(`"` + p.mark + `"`), Numbered: true, Parent: member.Field},
		{Field: groupNumber + p.mark, Kind: state.Set, Value: mustJSON(p.user), Parent: member.Field},
	}
}

// isNew returns the conditions that a user is neither a player nor has a reservation.
func isNew(user string) []state.Condition {
	return []state.Condition{sameField(userField(user), 0), sameField(reservedField(user), 0)}
}

// memberJSON returns the value of the field of a player that joins now.
func (r *Rooms) memberJSON(nickname string) []byte {
	return mustJSON(memberValue{Nickname: nickname, Joined: r.host.Now().UnixMilli()})
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
		return &wire.DetailedError{
			Err:  wire.Errorf(wire.Full, "room %s: it has %d of %d places taken", s.ID, s.held.taken(), s.Room.Capacity),
			Data: s.held,
		}
	}
	return nil
}
