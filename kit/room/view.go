package room

import (
	"context"

	"switchboard/internal/wire"
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
