package api

import (
	"errors"
	"net/http"
	"time"

	"switchboard/internal/wire"
	"switchboard/queue"
	"switchboard/registry"
)

const (
	// maxAhead is how far the clock of a backend may be ahead of this one.
	maxAhead = time.Minute
	// minBefore is the earliest time of a revocation, Unix ms: in the year 2001. A time in seconds is
	// earlier, and would revoke nothing.
	minBefore = 1e12
)

// revokeRequest is the body of a revocation. It may be empty.
type revokeRequest struct {
	Before  int64 `json:"before"` // Unix ms; 0 for the present
	Durable bool  `json:"durable"`
}

// revokeAnswer is the answer to a revocation.
type revokeAnswer struct {
	Before       int64 `json:"before"` // the time in force, Unix ms
	Until        int64 `json:"until"`  // when the store forgets it, Unix ms
	Disconnected int   `json:"disconnected"`
	Pending      int   `json:"pending,omitempty"` // servers
}

// revoke revokes tokens of a user, for all clients or for one.
func (a api) revoke(r *http.Request) (any, error) {
	user, client, err := pathOwner(r)
	if err == nil && user == "" {
		err = wire.Errorf(wire.BadRequest, "client %s: it has no user, and so no token", client)
	}
	if err != nil {
		return nil, err
	}
	v := registry.Revocation{User: user, Client: client}
	var body revokeRequest
	if err := decodeOptionalBody(r, &body); err != nil {
		return nil, err
	}
	v.Before, v.Durable = body.Before, body.Durable
	if err := checkRevocation(v); err != nil {
		return nil, err
	}
	done, closed, pending, err := a.Cluster.Revoke(r.Context(), v)
	switch {
	case errors.Is(err, registry.ErrNotReplicated):
		err = wire.Errorf(wire.Unavailable, "revoked, but not confirmed by a replica in time; repeat the call to wait again")
	case errors.Is(err, registry.ErrNoReplicas):
		err = queue.ErrNoReplicas
	}
	return revokeAnswer{done.Before, done.Until, closed, pending}, err
}

// checkRevocation checks the time of a revocation.
func checkRevocation(v registry.Revocation) error {
	switch latest := time.Now().Add(maxAhead).UnixMilli(); {
	case v.Before == 0:
	case v.Before < minBefore:
		return wire.Errorf(wire.BadRequest, "before: %d is before 2001; it is in milliseconds since 1970", v.Before)
	case v.Before > latest:
		return wire.Errorf(wire.BadRequest, "before: %d is in the future; later tokens would be refused as well", v.Before)
	}
	return nil
}
