package room

import "context"

// QuickForRequest is the body of a quick join by the backend.
type QuickForRequest struct {
	QuickRequest
	User string `json:"user" required:"true"`
	// Client is a connected client of the user, without the user's name. Zero means that the place is
	// reserved until a client joins.
	Client string `json:"client,omitempty"`
	// TTLMS is how long a reservation waits, ms. Zero means Mode.Reserve.
	TTLMS int64 `json:"ttl_ms,omitempty"`
	// TTL is the former name of TTLMS, in seconds.
	TTL int64 `json:"ttl,omitempty"`
}

// QuickFor is Quick for the client of a user, in the name of the backend. Without a client it
// reserves the place, and the user is the owner of a new room. A client that is not connected is
// not_found.
func (r *Rooms) QuickFor(ctx context.Context, q QuickForRequest) (j Joined, err error) {
	if err := checkUser(q.User); err != nil {
		return Joined{}, err
	}
	if q.Client != "" {
		err = r.callClient(ctx, q.User, q.Client, quickClient, q.QuickRequest, &j)
		return j, err
	}
	a := Actor{placed: true}
	join := func(id string) (Joined, error) {
		return r.reserveOne(ctx, a, id, JoinForRequest{User: q.User, TTLMS: q.TTLMS, TTL: q.TTL})
	}
	return r.quick(ctx, q.QuickRequest, entrance{
		user: q.User,
		join: join,
		create: func(n CreateRequest) (Joined, error) {
			n.Owner = q.User
			view, err := r.Create(ctx, a, n)
			if err != nil {
				return Joined{}, err
			}
			return join(view.ID)
		},
	})
}
