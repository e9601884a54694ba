package account

import (
	"context"
	"net/http"

	"switchboard/broker/api"
	"switchboard/kit"
)

// backendCalls are the calls with an API key.
func (a *Accounts) backendCalls() []api.Call {
	call := func(pattern string, handle func(r *http.Request, id string) (any, error)) api.Call {
		return api.Call{Pattern: pattern, Scope: api.ScopeAdmin, Handle: func(r *http.Request) (any, error) {
			return handle(r, r.PathValue("account"))
		}}
	}
	withBody := func(c api.Call) api.Call { c.Body = true; return c }
	rename := withBody(call("PATCH /v1/accounts/{account}", a.patch))
	rename.Conditions = api.IfMatch
	change := func(name string, change func(context.Context, string) (Account, error)) api.Call {
		return call("POST /v1/accounts/{account}/"+name, func(r *http.Request, id string) (any, error) { return change(r.Context(), id) })
	}
	list := call("GET /v1/accounts", a.list)
	list.Query = []string{"name", "state", "cursor", "limit"}
	return []api.Call{
		list,
		call("GET /v1/accounts/{account}", func(r *http.Request, id string) (any, error) { return a.Get(r.Context(), id) }),
		call("GET /v1/accounts/{account}/history", func(r *http.Request, id string) (any, error) {
			list, err := a.History(r.Context(), id)
			return map[string]any{"account": id, "events": list}, err
		}),
		rename,
		withBody(call("POST /v1/accounts/{account}/password", a.password)),
		change("lock", a.Lock), change("unlock", a.Unlock), change("delete", a.Delete), change("restore", a.Restore),
	}
}

// list answers a page of accounts, or the one with the name in the query.
func (a *Accounts) list(r *http.Request, _ string) (any, error) {
	query := r.URL.Query()
	if name := query.Get("name"); name != "" {
		return a.Find(r.Context(), name)
	}
	cursor, limit, err := api.Page(r)
	if err != nil {
		return nil, err
	}
	return a.List(r.Context(), State(query.Get("state")), cursor, limit)
}

func (a *Accounts) patch(r *http.Request, id string) (any, error) {
	var in struct {
		Name string `json:"name" required:"true"`
	}
	if err := api.DecodeBody(r, &in); err != nil {
		return nil, err
	}
	m, err := kit.MatchExisting(r.Header)
	if err != nil {
		return nil, err
	}
	return a.Rename(r.Context(), id, in.Name, Caller{}, m)
}

func (a *Accounts) password(r *http.Request, id string) (any, error) {
	var in struct {
		Password string `json:"password" required:"true"`
	}
	if err := api.DecodeBody(r, &in); err != nil {
		return nil, err
	}
	return a.SetPassword(r.Context(), id, in.Password)
}
