package hold

import (
	"context"
	"errors"
	"io"
	"net/http"

	"switchboard/broker/api"
	"switchboard/kit"
)

// calls returns the HTTP calls.
func (h *Holds) calls() []api.Call {
	return []api.Call{
		{Pattern: "GET /v1/holds", Scope: api.ScopeRead, Query: []string{"cursor", "limit"}, Handle: h.listCall},
		{Pattern: "PUT /v1/holds/{resource}", Scope: api.ScopePush, Conditions: api.IfMatchOrNone, Body: true, Handle: h.putCall},
		{Pattern: "GET /v1/holds/{resource}", Scope: api.ScopeRead, Handle: h.getCall},
		{Pattern: "DELETE /v1/holds/{resource}", Scope: api.ScopePush, Conditions: api.IfMatch, Handle: h.deleteCall},
		{Pattern: "POST /v1/holds/query", Scope: api.ScopeRead, Body: true, Handle: h.queryCall},
		{Pattern: "POST /v1/holds/{resource}/holds", Scope: api.ScopePush, Body: true, Handle: h.takeCall(Held)},
		{Pattern: "POST /v1/holds/{resource}/sales", Scope: api.ScopePush, Body: true, Handle: h.takeCall(Sold)},
		{Pattern: "GET /v1/holds/{resource}/holds/{id}", Scope: api.ScopeRead, Handle: h.getHoldCall},
		{Pattern: "POST /v1/holds/{resource}/holds/{id}/renew", Scope: api.ScopePush, Body: true, Handle: changeCall(h.Renew)},
		{Pattern: "POST /v1/holds/{resource}/holds/{id}/confirm", Scope: api.ScopePush, Body: true, Handle: changeCall(h.Confirm)},
		{Pattern: "POST /v1/holds/{resource}/holds/{id}/release", Scope: api.ScopePush, Body: true, Handle: changeCall(h.Release)},
		{Pattern: "GET /v1/holds/{resource}/users/{user}", Scope: api.ScopeRead, Handle: h.userCall},
	}
}

func (h *Holds) putCall(r *http.Request) (any, error) {
	var req PutRequest
	if err := api.DecodeBody(r, &req); err != nil {
		return nil, err
	}
	var err error
	if req.Match, err = kit.ParseMatch(r.Header); err != nil {
		return nil, err
	}
	return answer(h.Put(r.Context(), r.PathValue("resource"), req))
}

func (h *Holds) getCall(r *http.Request) (any, error) {
	return answer(h.Status(r.Context(), r.PathValue("resource")))
}

func (h *Holds) deleteCall(r *http.Request) (any, error) {
	match, err := kit.MatchExisting(r.Header)
	if err != nil {
		return nil, err
	}
	return answer(match.Removed(h.Delete(r.Context(), r.PathValue("resource"), match)))
}

func (h *Holds) queryCall(r *http.Request) (any, error) {
	var req struct {
		Resources []string `json:"resources" required:"true"`
	}
	if err := api.DecodeBody(r, &req); err != nil {
		return nil, err
	}
	list, err := h.Statuses(r.Context(), req.Resources)
	return answer(map[string]any{"resources": list}, err)
}

func (h *Holds) takeCall(as State) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		var req TakeRequest
		if err := api.DecodeBody(r, &req); err != nil {
			return nil, err
		}
		if as == Sold {
			return answer(h.Sell(r.Context(), r.PathValue("resource"), req))
		}
		return answer(h.Hold(r.Context(), r.PathValue("resource"), req))
	}
}

func (h *Holds) getHoldCall(r *http.Request) (any, error) {
	return answer(h.Get(r.Context(), r.PathValue("resource"), r.PathValue("id")))
}

// changeCall returns a call that changes a hold. Its body, {"durable":true}, may be missing.
func changeCall(change func(context.Context, Change) (*Hold, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		var req struct {
			Durable bool `json:"durable"`
		}
		if r.ContentLength != 0 {
			if err := api.DecodeBody(r, &req); err != nil && !errors.Is(err, io.EOF) {
				return nil, err
			}
		}
		return answer(change(r.Context(), Change{Resource: r.PathValue("resource"), ID: r.PathValue("id"), Durable: req.Durable}))
	}
}

func (h *Holds) userCall(r *http.Request) (any, error) {
	user, err := api.PathName(r, "user")
	if err != nil {
		return nil, err
	}
	list, err := h.Of(r.Context(), r.PathValue("resource"), user)
	return answer(map[string]any{"holds": list}, err)
}
