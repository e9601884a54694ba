package room

import (
	"context"
	"net/http"

	"switchboard/broker/api"
	"switchboard/broker/session"
	"switchboard/internal/wire"
	"switchboard/kit/index"
)

// listMethods returns the requests of clients about more than one room.
func (r *Rooms) listMethods() map[string]session.Method {
	return map[string]session.Method{
		"room.list":  method(r.List),
		"room.quick": method(r.Quick),
		"room.mine":  method(func(ctx context.Context, a Actor, q MineRequest) (MinePage, error) { return r.Mine(ctx, a, "", q) }),
	}
}

// listCalls returns the HTTP calls about more than one room.
func (r *Rooms) listCalls() []api.Call {
	filters := []string{"mode", "status", "region", "visibility", "owner"}
	list := append([]string{"free", "order", "desc", "from", "to", "cursor", "limit"}, filters...)
	return []api.Call{
		{Pattern: "GET /v1/rooms", Scope: api.ScopeRead, Query: list, Handle: r.handleList},
		{Pattern: "GET /v1/room-count", Scope: api.ScopeRead, Query: filters, Handle: r.handleCount},
		{Pattern: "POST /v1/rooms/query", Scope: api.ScopeRead, Body: true, Handle: r.handleQuery},
		{Pattern: "POST /v1/rooms/quick", Scope: api.ScopePush, Body: true, Handle: r.handleQuick},
		{Pattern: "GET /v1/users/{user}/rooms", Scope: api.ScopeRead, Query: []string{"cursor", "limit"}, Handle: r.handleMine},
	}
}

func (r *Rooms) handleList(q *http.Request) (any, error) {
	list, err := listRequest(q)
	if err != nil {
		return nil, err
	}
	return r.List(q.Context(), Backend, list)
}

func (r *Rooms) handleCount(q *http.Request) (any, error) {
	list, err := listRequest(q)
	if err != nil {
		return nil, err
	}
	n, err := r.Count(q.Context(), list)
	return map[string]int{"count": n}, err
}

func (r *Rooms) handleQuery(q *http.Request) (any, error) {
	var body struct {
		Rooms []string `json:"rooms" required:"true"`
	}
	if err := api.DecodeBody(q, &body); err != nil {
		return nil, err
	}
	rooms, err := r.Query(q.Context(), body.Rooms)
	return map[string][]View{"rooms": rooms}, err
}

func (r *Rooms) handleMine(q *http.Request) (any, error) {
	user, err := api.PathName(q, "user")
	if err != nil {
		return nil, err
	}
	cursor, limit, err := api.Page(q)
	if err != nil {
		return nil, err
	}
	return r.Mine(q.Context(), Backend, user, MineRequest{Cursor: cursor, Limit: limit})
}

// listRequest parses the query of a list or a count.
func listRequest(q *http.Request) (l ListRequest, err error) {
	values := q.URL.Query()
	l = ListRequest{
		Mode: values.Get("mode"), Status: Status(values.Get("status")), Region: values.Get("region"),
		Visibility: Visibility(values.Get("visibility")), Owner: values.Get("owner"), Order: values.Get("order"),
	}
	if l.Cursor, l.Limit, err = api.Page(q); err != nil {
		return l, err
	}
	switch values.Get("desc") {
	case "", "0", "false":
	case "1", "true":
		l.Desc = true
	default:
		return l, wire.Errorf(wire.BadRequest, "desc: it is neither true nor false")
	}
	var free int64
	for _, number := range []struct {
		name string
		to   *int64
		most int64
	}{{"free", &free, MaxCapacity}, {"from", &l.From, index.MaxScore}, {"to", &l.To, index.MaxScore}} {
		if *number.to, err = api.QueryInt(q, number.name, 0, 0, number.most); err != nil {
			return l, err
		}
	}
	l.Free = int(free)
	return l, nil
}
