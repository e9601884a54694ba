package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"switchboard/internal/wire"
	"switchboard/registry"
)

// Connection describes the connection of a client.
type Connection struct {
	Address  string   `json:"address"`           // the peer's host:port, which may be a proxy
	Expires  int64    `json:"expires,omitempty"` // when the token ends, Unix seconds; 0 for never
	Channels []string `json:"channels"`          // without system channels
}

// client answers a client, with its connection if it is online.
func (a api) client(r *http.Request) (any, error) {
	client, err := pathClient(r)
	if err != nil {
		return nil, err
	}
	c, known, err := a.Queue.Client(r.Context(), client)
	if err != nil {
		return nil, err
	}
	if !known {
		return nil, wire.Errorf(wire.NotFound, "client %s is not known", client)
	}
	answer := struct {
		clientStatus
		User string `json:"user,omitempty"`
		*Connection
	}{clientStatus: clientStatus{Client: client, Server: c.Server, Queued: c.Queued}, User: wire.UserOf(client)}
	if !c.Since.IsZero() {
		answer.Since = c.Since.UnixMilli()
	}
	if c.Server != "" {
		if answer.Connection, err = a.Cluster.Connection(r.Context(), c.Server, client); err != nil {
			return nil, err
		}
	}
	answer.Online = answer.Connection != nil
	return answer, nil
}

// UserCount is the number of users that are online, each counted once.
type UserCount struct {
	Users int
	Exact bool // otherwise an estimate, see package sketch
}

// onlineUser is a user in an answer.
type onlineUser struct {
	User    string   `json:"user"`
	Clients []string `json:"clients"` // those that are online
}

// onlineUsers answers a page of the users that are online. With limit=0 it answers their number
// only.
func (a api) onlineUsers(r *http.Request) (any, error) {
	cursor, limit, err := page(r, 0)
	if err != nil {
		return nil, err
	}
	answer := map[string]any{}
	servers := a.Cluster.ServerNumbers(r.Context())
	var count, connections int64
	for _, s := range servers {
		count += s.Users
		connections += s.Connections
	}
	answer["count"], answer["connections"] = count, connections
	if cursor == "" {
		if c, known := a.Cluster.OnlineUsers(r.Context()); known {
			answer["distinct"], answer["exact"] = c.Users, c.Exact
		}
	}
	if limit > 0 {
		ids := make([]string, len(servers))
		for i, s := range servers {
			ids[i] = s.ID
		}
		slices.Sort(ids)
		users, next, err := a.pageOfUsers(r.Context(), ids, cursor, limit)
		if err != nil {
			return nil, err
		}
		answer["users"] = users
		if next != "" {
			answer["cursor"] = next
		}
	}
	return answer, nil
}

// pageOfUsers returns the next users of the servers, one server after the other. A cursor is a
// server and the cursor in its clients. A server that is no longer there is skipped.
func (a api) pageOfUsers(ctx context.Context, servers []string, cursor string, limit int) ([]onlineUser, string, error) {
	var server, at string
	if cursor != "" {
		var isCursor bool
		if server, at, isCursor = strings.Cut(cursor, "/"); !isCursor { // the id of a server has no slash
			return nil, "", registry.ErrBadCursor
		}
	}
	i, found := slices.BinarySearch(servers, server)
	if !found {
		at = ""
	}
	for ; i < len(servers); i++ {
		clients, next, err := a.Registry.ClientPage(ctx, servers[i], at, limit)
		if err != nil {
			return nil, "", err
		}
		users, err := a.usersOf(ctx, servers, servers[i], clients)
		switch {
		case err != nil:
			return nil, "", err
		case next != "":
			return users, servers[i] + "/" + next, nil
		case len(users) > 0 && i+1 < len(servers):
			return users, servers[i+1] + "/", nil
		case len(users) > 0:
			return users, "", nil
		}
		at = ""
	}
	return []onlineUser{}, "", nil
}

// usersOf returns the users of the clients. A user with several clients online is returned with the
// first of them only, by server and client, so that no two pages have the same user.
func (a api) usersOf(ctx context.Context, servers []string, server string, clients []string) ([]onlineUser, error) {
	here := map[string]bool{}
	var names []string
	for _, c := range clients {
		if user := wire.UserOf(c); user != "" {
			here[c] = true
			names = append(names, user)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	found, err := a.Registry.Users(ctx, names)
	if err != nil {
		return nil, err
	}
	users := []onlineUser{}
	for i, bindings := range found {
		bindings = slices.DeleteFunc(bindings, func(b registry.Binding) bool {
			_, live := slices.BinarySearch(servers, b.Server)
			return !live
		})
		slices.SortFunc(bindings, func(x, y registry.Binding) int {
			return cmp.Or(cmp.Compare(x.Server, y.Server), cmp.Compare(x.Client, y.Client))
		})
		if len(bindings) == 0 || bindings[0].Server != server || !here[bindings[0].Client] {
			continue
		}
		u := onlineUser{User: names[i]}
		for _, b := range bindings {
			u.Clients = append(u.Clients, b.Client)
		}
		users = append(users, u)
	}
	return users, nil
}
