package account

import (
	"io"
	"net/http"
	"time"

	"switchboard/broker/api"
	"switchboard/broker/namespace"
	"switchboard/internal/wire"
	"switchboard/kit"
)

// calls are the calls of backends.
func (s *Sessions) calls() []api.Call {
	return []api.Call{
		{Pattern: "GET /v1/sessions/{user}", Scope: api.ScopeRead, Handle: func(r *http.Request) (any, error) {
			return s.Get(r.Context(), r.PathValue("user"))
		}},
		{Pattern: "PUT /v1/sessions/{user}", Scope: api.ScopePush, Query: []string{"ttl_ms", "ttl"}, Conditions: api.IfMatchOrNone, Body: true, Handle: s.put},
		{Pattern: "DELETE /v1/sessions/{user}", Scope: api.ScopePush, Conditions: api.IfMatch, Handle: func(r *http.Request) (any, error) {
			m, err := kit.MatchExisting(r.Header)
			if err != nil {
				return nil, err
			}
			found, err := s.remove(r.Context(), r.PathValue("user"), m)
			return kit.Removed{Deleted: found}, err
		}},
	}
}

// put stores the body, a JSON value, for the time that the query names.
func (s *Sessions) put(r *http.Request) (any, error) {
	m, err := kit.ParseMatch(r.Header)
	if err != nil {
		return nil, err
	}
	ms, err := api.QueryInt(r, "ttl_ms", 0, time.Second.Milliseconds(), namespace.MaxLease.Milliseconds())
	if err != nil {
		return nil, err
	}
	seconds, err := api.QueryInt(r, "ttl", 0, 1, int64(namespace.MaxLease/time.Second))
	if err != nil {
		return nil, err
	}
	ttl, err := kit.TTL(ms, seconds, namespace.MaxLease)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxDocument+1))
	if err != nil {
		return nil, wire.Errorf(wire.BadRequest, "the body cannot be read")
	}
	return s.Put(r.Context(), r.PathValue("user"), body, ttl, m)
}
