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

// revokeUser revokes tokens of a user for all clients.
func (a api) revokeUser(w http.ResponseWriter, r *http.Request) {
	user, err := PathName(r, "user")
	if err != nil {
		a.writeError(w, err)
		return
	}
	a.revoke(w, r, registry.Revocation{User: user})
}

// revokeClient revokes tokens of a user for one client.
func (a api) revokeClient(w http.ResponseWriter, r *http.Request) {
	client := wire.ClientID(r.PathValue("user"), r.PathValue("client"))
	err := wire.CheckClientID(client)
	if err == nil && wire.UserOf(client) == "" {
		err = wire.Errorf(wire.BadRequest, "client %s: it has no user, and so no token", client)
	}
	if err != nil {
		a.writeError(w, err)
		return
	}
	a.revoke(w, r, registry.Revocation{User: wire.UserOf(client), Client: client})
}

func (a api) revoke(w http.ResponseWriter, r *http.Request, v registry.Revocation) {
	var body revokeRequest
	err := decodeOptionalBody(r, &body)
	if err == nil {
		v.Before, v.Durable = body.Before, body.Durable
		err = checkRevocation(v)
	}
	if err != nil {
		a.writeError(w, err)
		return
	}
	done, closed, pending, err := a.Cluster.Revoke(r.Context(), v)
	switch {
	case errors.Is(err, registry.ErrNotReplicated):
		err = wire.Errorf(wire.Unavailable, "revoked, but not confirmed by a replica in time; repeat the call to wait again")
	case errors.Is(err, registry.ErrNoReplicas):
		err = queue.ErrNoReplicas
	}
	if err != nil {
		a.writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, revokeAnswer{done.Before, done.Until, closed, pending})
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
