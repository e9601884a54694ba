package room

import (
	"context"
	"slices"

	"switchboard/internal/wire"
	"switchboard/registry"
)

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
