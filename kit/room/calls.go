package room

import (
	"cmp"
	"net/http"

	"switchboard/broker/api"
	"switchboard/kit"
)

// calls returns the HTTP calls of backends.
func (r *Rooms) calls() []api.Call {
	return []api.Call{
		{Pattern: "POST /v1/rooms", Scope: api.ScopePush, Body: true, Handle: r.handleCreate},
		{Pattern: "GET /v1/rooms/{room}", Scope: api.ScopeRead, Handle: r.handleGet},
		{Pattern: "PATCH /v1/rooms/{room}", Scope: api.ScopePush, Conditions: api.IfMatch, Body: true, Handle: r.handlePatch},
		{Pattern: "DELETE /v1/rooms/{room}", Scope: api.ScopePush, Conditions: api.IfMatch, Handle: r.handleDelete},
		{Pattern: "POST /v1/rooms/{room}/reserve", Scope: api.ScopePush, Body: true, Handle: r.handleReserve},
		{Pattern: "POST /v1/rooms/{room}/join", Scope: api.ScopePush, Body: true, Handle: r.handleJoin},
		{Pattern: "POST /v1/rooms/{room}/leave", Scope: api.ScopePush, Body: true, Handle: r.handleLeave},
		{Pattern: "POST /v1/rooms/{room}/kick", Scope: api.ScopePush, Body: true, Handle: r.handleKick},
		{Pattern: "POST /v1/rooms/{room}/lock", Scope: api.ScopePush, Body: true, Handle: r.handleLock},
		{Pattern: "POST /v1/rooms/{room}/start", Scope: api.ScopePush, Handle: func(q *http.Request) (any, error) {
			return r.Start(q.Context(), Backend, q.PathValue("room"))
		}},
		{Pattern: "POST /v1/rooms/{room}/finish", Scope: api.ScopePush, Handle: func(q *http.Request) (any, error) {
			return r.Finish(q.Context(), Backend, q.PathValue("room"))
		}},
	}
}

func (r *Rooms) handleCreate(q *http.Request) (any, error) {
	var body CreateRequest
	if err := api.DecodeBody(q, &body); err != nil {
		return nil, err
	}
	return r.Create(q.Context(), Backend, body)
}

func (r *Rooms) handleGet(q *http.Request) (any, error) {
	return r.Get(q.Context(), Backend, q.PathValue("room"))
}

func (r *Rooms) handlePatch(q *http.Request) (any, error) {
	var body PatchRequest
	if err := api.DecodeBody(q, &body); err != nil {
		return nil, err
	}
	version, err := kit.IfMatch(q.Header)
	if err != nil {
		return nil, err
	}
	body.Room, body.Version = q.PathValue("room"), cmp.Or(version, body.Version)
	return r.Patch(q.Context(), Backend, body)
}

func (r *Rooms) handleDelete(q *http.Request) (any, error) {
	match, err := kit.MatchExisting(q.Header)
	if err != nil {
		return nil, err
	}
	id := q.PathValue("room")
	removed, err := match.Removed(r.Delete(q.Context(), id, match.Version))
	removed.ID = id
	return removed, err
}

func (r *Rooms) handleReserve(q *http.Request) (any, error) {
	var body ReserveRequest
	if err := api.DecodeBody(q, &body); err != nil {
		return nil, err
	}
	return r.Reserve(q.Context(), q.PathValue("room"), body)
}

func (r *Rooms) handleJoin(q *http.Request) (any, error) {
	var body JoinForRequest
	if err := api.DecodeBody(q, &body); err != nil {
		return nil, err
	}
	return r.JoinFor(q.Context(), q.PathValue("room"), body)
}

func (r *Rooms) handleLeave(q *http.Request) (any, error) {
	var body struct {
		User string `json:"user" required:"true"`
	}
	if err := api.DecodeBody(q, &body); err != nil {
		return nil, err
	}
	return r.Leave(q.Context(), Backend, q.PathValue("room"), body.User)
}

func (r *Rooms) handleKick(q *http.Request) (any, error) {
	var body KickRequest
	if err := api.DecodeBody(q, &body); err != nil {
		return nil, err
	}
	return r.KickFor(q.Context(), Backend, q.PathValue("room"), body)
}

func (r *Rooms) handleLock(q *http.Request) (any, error) {
	var body lockRequest
	if err := api.DecodeBody(q, &body); err != nil {
		return nil, err
	}
	return r.Lock(q.Context(), Backend, q.PathValue("room"), body.locked())
}
