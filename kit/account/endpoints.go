package account

import (
	"context"
	"io"
	"net/http"

	"switchboard/broker/api"
	"switchboard/broker/namespace"
	"switchboard/internal/wire"
	"switchboard/kit"
)

// caller is the caller of a call without an API key.
type caller struct {
	Caller
	id string // the account of the token, or "" for calls without one
}

// publicCalls are the calls without an API key.
func (a *Accounts) publicCalls() []api.Call {
	type renewal struct {
		Renewal string `json:"renewal" required:"true"`
	}
	return []api.Call{
		public("POST /v1/accounts", a.anyone, func(ctx context.Context, from caller, q Registration) (Session, error) {
			return a.Register(ctx, q, from.Caller)
		}),
		public("POST /v1/accounts/challenge", a.anyone, func(ctx context.Context, from caller, q struct {
			Message string `json:"message" required:"true"`
		}) (Challenge, error) {
			return a.Challenge(ctx, q.Message, from.Caller)
		}),
		public("POST /v1/accounts/login", a.anyone, func(ctx context.Context, from caller, q Credentials) (Session, error) {
			return a.Login(ctx, q, from.Caller)
		}),
		public("POST /v1/accounts/renew", a.anyone, func(ctx context.Context, from caller, q renewal) (Session, error) {
			return a.Renew(ctx, q.Renewal, from.Caller)
		}),
		public("POST /v1/accounts/logout", a.anyone, func(ctx context.Context, from caller, q struct {
			renewal
			Everywhere bool `json:"everywhere"`
		}) (struct{}, error) {
			return struct{}{}, a.Logout(ctx, q.Renewal, q.Everywhere, from.Caller)
		}),
		public("GET /v1/accounts/me", a.self, func(ctx context.Context, from caller, _ struct{}) (Account, error) {
			return a.GetSelf(ctx, from.id, from.Caller)
		}),
		public("PATCH /v1/accounts/me", a.self, a.patchSelf),
		public("POST /v1/accounts/me/password", a.self, func(ctx context.Context, from caller, q struct {
			Password string `json:"password" required:"true"`
			New      string `json:"new" required:"true"`
		}) (Account, error) {
			return a.ChangePassword(ctx, from.id, q.Password, q.New, from.Caller)
		}),
		public("POST /v1/accounts/me/delete", a.self, func(ctx context.Context, from caller, q struct {
			Password string `json:"password"`
			Renewal  string `json:"renewal"`
		}) (Account, error) {
			from.Renewal = q.Renewal
			return a.DeleteSelf(ctx, from.id, q.Password, from.Caller)
		}),
	}
}

// public returns a call without an API key, which runs an operation with the bound request.
func public[Q, A any](pattern string, callerOf func(*http.Request) (caller, error), run func(context.Context, caller, Q) (A, error)) api.Call {
	b := kit.NewBinder[Q](api.DecodeBody)
	return api.Call{
		Pattern: pattern, Public: true, Conditions: b.Conditions, Body: b.Body,
		Handle: func(r *http.Request) (any, error) {
			from, err := callerOf(r)
			if err != nil {
				return nil, err
			}
			return kit.Handle(b, func(ctx context.Context, q Q) (A, error) { return run(ctx, from, q) })(r)
		},
	}
}

// anyone returns the caller of a call without a token.
func (a *Accounts) anyone(r *http.Request) (caller, error) {
	return caller{Caller: Caller{Address: a.host.Address(r)}}, nil
}

// self returns the caller of a call with a token of the broker.
func (a *Accounts) self(r *http.Request) (from caller, err error) {
	from.Address = a.host.Address(r)
	if err := a.rates.call(from.Caller); err != nil {
		return from, err
	}
	from.id, from.Login, err = a.bearer(r.Header.Get("Authorization"))
	return from, err
}

// patchSelf changes the nickname, or the name. A guest gives a name and a password together.
func (a *Accounts) patchSelf(ctx context.Context, from caller, q struct {
	Nickname *string   `json:"nickname"`
	Name     *string   `json:"name"`
	Password *string   `json:"password"`
	Renewal  string    `json:"renewal"`
	Match    kit.Match `json:"-" header:"If-Match"`
}) (Account, error) {
	from.Renewal = q.Renewal
	switch {
	case (q.Nickname == nil) == (q.Name == nil):
		return Account{}, wire.Errorf(wire.BadRequest, "want either nickname or name")
	case q.Nickname != nil:
		return a.SetNickname(ctx, from.id, *q.Nickname, from.Caller, q.Match)
	case q.Password == nil:
		return Account{}, wire.Errorf(wire.BadRequest, "password: it is missing")
	}
	return a.RenameSelf(ctx, from.id, *q.Name, *q.Password, from.Caller, q.Match)
}

// accountRequest names the account of a call with an API key.
type accountRequest struct {
	Account string `path:"account"`
}

// backendCalls are the calls with an API key.
func (a *Accounts) backendCalls() []api.Call {
	change := func(name string, run func(context.Context, string) (Account, error)) api.Call {
		return kit.Call("POST /v1/accounts/{account}/"+name, api.ScopeAdmin, func(ctx context.Context, q accountRequest) (Account, error) {
			return run(ctx, q.Account)
		})
	}
	return []api.Call{
		kit.Call("GET /v1/accounts", api.ScopeAdmin, func(ctx context.Context, q struct {
			Name  string `query:"name"`
			State State  `query:"state"`
			kit.Paged
		}) (any, error) {
			if q.Name != "" {
				return a.Find(ctx, q.Name)
			}
			return a.List(ctx, q.State, q.Cursor, q.Limit)
		}),
		kit.Call("GET /v1/accounts/{account}", api.ScopeAdmin, func(ctx context.Context, q accountRequest) (Account, error) {
			return a.Get(ctx, q.Account)
		}),
		kit.Call("GET /v1/accounts/{account}/history", api.ScopeAdmin, func(ctx context.Context, q accountRequest) (any, error) {
			list, err := a.History(ctx, q.Account)
			return map[string]any{"account": q.Account, "events": list}, err
		}),
		kit.Call("PATCH /v1/accounts/{account}", api.ScopeAdmin, func(ctx context.Context, q struct {
			accountRequest
			Name  string    `json:"name" required:"true"`
			Match kit.Match `header:"If-Match"`
		}) (Account, error) {
			return a.Rename(ctx, q.Account, q.Name, Caller{}, q.Match)
		}),
		kit.Call("POST /v1/accounts/{account}/password", api.ScopeAdmin, func(ctx context.Context, q struct {
			accountRequest
			Password string `json:"password" required:"true"`
		}) (Account, error) {
			return a.SetPassword(ctx, q.Account, q.Password)
		}),
		change("lock", a.Lock), change("unlock", a.Unlock), change("delete", a.Delete), change("restore", a.Restore),
	}
}

// sessionRequest names the user of a call about sessions.
type sessionRequest struct {
	User string `path:"user"`
}

// calls are the calls of backends.
func (s *Sessions) calls() []api.Call {
	return []api.Call{
		kit.Call("GET /v1/sessions/{user}", api.ScopeRead, func(ctx context.Context, q sessionRequest) (Document, error) {
			return s.Get(ctx, q.User)
		}),
		s.putCall(),
		kit.Call("DELETE /v1/sessions/{user}", api.ScopePush, func(ctx context.Context, q struct {
			sessionRequest
			Match kit.Match `header:"If-Match"`
		}) (kit.Removed, error) {
			found, err := s.remove(ctx, q.User, q.Match)
			return kit.Removed{Deleted: found}, err
		}),
	}
}

// putRequest is a change of a document. Its bounds are those of namespace.MaxLease.
type putRequest struct {
	sessionRequest
	TTLMS int64     `query:"ttl_ms" range:"1000,315360000000"`
	TTL   int64     `query:"ttl" range:"1,315360000"`
	Match kit.Match `header:"If-Match,If-None-Match"`
}

// putCall stores the body, any JSON value, for the time that the query names.
func (s *Sessions) putCall() api.Call {
	b := kit.NewBinder[putRequest](nil)
	return api.Call{
		Pattern: "PUT /v1/sessions/{user}", Scope: api.ScopePush, Query: b.Query, Conditions: api.IfMatchOrNone, Body: true,
		Handle: func(r *http.Request) (any, error) {
			q, err := b.Bind(r)
			if err != nil {
				return nil, err
			}
			ttl, err := kit.TTL(q.TTLMS, q.TTL, namespace.MaxLease)
			if err != nil {
				return nil, err
			}
			body, err := io.ReadAll(io.LimitReader(r.Body, MaxDocument+1))
			if err != nil {
				return nil, wire.Errorf(wire.BadRequest, "the body cannot be read")
			}
			return s.Put(r.Context(), q.User, body, ttl, q.Match)
		},
	}
}
