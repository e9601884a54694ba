package account

import (
	"context"
	"net/http"

	"switchboard/broker/api"
	"switchboard/internal/wire"
	"switchboard/kit"
)

// publicCalls are the calls without an API key.
func (a *Accounts) publicCalls() []api.Call {
	post := func(path string, handle func(*http.Request) (any, error)) api.Call {
		return api.Call{Pattern: "POST /v1/accounts" + path, Public: true, Body: true, Handle: handle}
	}
	return []api.Call{
		post("", handle(a, a.Register)),
		post("/challenge", handle(a, func(ctx context.Context, in struct {
			Message string `json:"message" required:"true"`
		}, from Caller) (Challenge, error) {
			return a.Challenge(ctx, in.Message, from)
		})),
		post("/login", handle(a, a.Login)),
		post("/renew", handle(a, func(ctx context.Context, in struct {
			Renewal string `json:"renewal" required:"true"`
		}, from Caller) (Session, error) {
			return a.Renew(ctx, in.Renewal, from)
		})),
		post("/logout", handle(a, func(ctx context.Context, in struct {
			Renewal    string `json:"renewal" required:"true"`
			Everywhere bool   `json:"everywhere"`
		}, from Caller) (struct{}, error) {
			return struct{}{}, a.Logout(ctx, in.Renewal, in.Everywhere, from)
		})),
		{Pattern: "GET /v1/accounts/me", Public: true, Handle: a.self(func(r *http.Request, id string, from Caller) (any, error) {
			return a.GetSelf(r.Context(), id, from)
		})},
		{Pattern: "PATCH /v1/accounts/me", Public: true, Conditions: api.IfMatch, Body: true, Handle: a.self(a.patchSelf)},
		post("/me/password", a.self(a.passwordOfSelf)),
		post("/me/delete", a.self(a.deleteSelf)),
	}
}

// handle returns a handler that decodes the body for call.
func handle[In, Out any](a *Accounts, call func(context.Context, In, Caller) (Out, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		var in In
		if err := api.DecodeBody(r, &in); err != nil {
			return nil, err
		}
		return call(r.Context(), in, Caller{Address: a.host.Address(r)})
	}
}

// self returns a handler for a call with a token of the broker.
func (a *Accounts) self(call func(r *http.Request, id string, from Caller) (any, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		from := Caller{Address: a.host.Address(r)}
		if err := a.rates.call(from); err != nil {
			return nil, err
		}
		id, login, err := a.bearer(r.Header.Get("Authorization"))
		if err != nil {
			return nil, err
		}
		from.Login = login
		return call(r, id, from)
	}
}

// patchSelf changes the nickname, or the name. A guest gives a name and a password together.
func (a *Accounts) patchSelf(r *http.Request, id string, from Caller) (any, error) {
	var in struct {
		Nickname *string `json:"nickname"`
		Name     *string `json:"name"`
		Password *string `json:"password"`
		Renewal  string  `json:"renewal"`
	}
	if err := api.DecodeBody(r, &in); err != nil {
		return nil, err
	}
	from.Renewal = in.Renewal
	m, err := kit.MatchExisting(r.Header)
	switch {
	case err != nil:
		return nil, err
	case (in.Nickname == nil) == (in.Name == nil):
		return nil, wire.Errorf(wire.BadRequest, "want either nickname or name")
	case in.Nickname != nil:
		return a.SetNickname(r.Context(), id, *in.Nickname, from, m)
	}
	if in.Password == nil {
		return nil, wire.Errorf(wire.BadRequest, "password: it is missing")
	}
	return a.RenameSelf(r.Context(), id, *in.Name, *in.Password, from, m)
}

func (a *Accounts) passwordOfSelf(r *http.Request, id string, from Caller) (any, error) {
	var in struct {
		Password string `json:"password" required:"true"`
		New      string `json:"new" required:"true"`
	}
	if err := api.DecodeBody(r, &in); err != nil {
		return nil, err
	}
	return a.ChangePassword(r.Context(), id, in.Password, in.New, from)
}

func (a *Accounts) deleteSelf(r *http.Request, id string, from Caller) (any, error) {
	var in struct {
		Password string `json:"password"`
		Renewal  string `json:"renewal"`
	}
	if err := api.DecodeBody(r, &in); err != nil {
		return nil, err
	}
	from.Renewal = in.Renewal
	return a.DeleteSelf(r.Context(), id, in.Password, from)
}
