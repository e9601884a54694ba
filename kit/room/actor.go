package room

import (
	"context"
	"slices"

	"switchboard/broker/session"
	"switchboard/internal/state"
	"switchboard/internal/wire"
)

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
	list := []state.Condition{sameField(fieldOwner, s.ownerID), sameField(memberField(s.Owner), owner.id)}
	if owner.User == s.OwnerUser {
		return list
	}
	if s.OwnerUser != "" {
		list = append(list, state.Condition{Field: userField(s.OwnerUser), Kind: state.IsAbsent})
	}
	return append(list, sameField(fieldTaken, s.takenID))
}

// sameField requires that a field has the id, or that it is absent if the id is 0.
func sameField(name string, id int64) state.Condition {
	if id == 0 {
		return state.Condition{Field: name, Kind: state.IsAbsent}
	}
	return state.Condition{Field: name, Kind: state.IsID, ID: id}
}
