package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"golang.org/x/sync/errgroup"

	"switchboard/broker/namespace"
	"switchboard/internal/wire"
	"switchboard/registry"
)

func (a api) channels(r *http.Request) (any, error) {
	cursor, limit, err := page(r, 1)
	if err != nil {
		return nil, err
	}
	names, next, err := a.Registry.Channels(r.Context(), r.URL.Query().Get("prefix"), cursor, limit)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, wire.IsSystem)
	type row struct {
		Channel     string `json:"channel"`
		Subscribers int    `json:"subscribers"`
	}
	rows := make([]row, len(names))
	counts, partial := a.Cluster.Subscribers(r.Context(), names)
	for i, name := range names {
		rows[i] = row{name, counts[i]}
	}
	return struct {
		Channels []row  `json:"channels"`
		Cursor   string `json:"cursor,omitempty"`
		Partial  bool   `json:"partial,omitempty"` // a server did not answer, so the numbers are a lower bound
	}{rows, next, partial}, nil
}

func (a api) channel(r *http.Request) (any, error) {
	name, err := PathName(r, "channel")
	if err != nil {
		return nil, err
	}
	servers, err1 := a.Registry.ChannelServers(r.Context(), name)
	position, err2 := a.Queue.ReadChannel(r.Context(), name, 0, 0) // no messages, only the last id
	size, err3 := a.Queue.ChannelSize(r.Context(), name)
	if err := cmp.Or(err1, err2, err3); err != nil {
		return nil, err
	}
	servers = slices.DeleteFunc(servers, func(s string) bool { return !a.Cluster.Live(s) })
	counts, partial := a.Cluster.Subscribers(r.Context(), []string{name})
	return struct {
		Channel     string `json:"channel"`
		ID          int64  `json:"id"`
		Messages    int    `json:"messages"`
		Partial     bool   `json:"partial,omitempty"`
		Servers     int    `json:"servers"`
		Subscribers int    `json:"subscribers"`
	}{name, position.Last, size, partial, len(servers), counts[0]}, nil
}

// clientStatus is one client of a user in an answer.
type clientStatus struct {
	Client string `json:"client"`
	Server string `json:"server,omitempty"`
	Online bool   `json:"online"`
	Since  int64  `json:"since,omitempty"` // ms since 1970
	Queued int    `json:"queued"`
}

// user answers the clients of a user, and whether one of them is online.
func (a api) user(r *http.Request) (any, error) {
	user, err := PathName(r, "user")
	if err != nil {
		return nil, err
	}
	bindings, err := a.Registry.User(r.Context(), user)
	if err != nil {
		return nil, err
	}
	clients := make([]clientStatus, len(bindings))
	var revoked int64
	group, ctx := errgroup.WithContext(r.Context())
	group.Go(func() (err error) {
		revoked, err = a.Registry.RevokedBefore(ctx, user)
		return err
	})
	for i, b := range bindings {
		group.Go(func() error {
			c, known, err := a.Queue.Client(ctx, b.Client)
			if err != nil || !known || c.User != user {
				return err
			}
			status := clientStatus{Client: b.Client, Server: c.Server, Queued: c.Queued}
			if !c.Since.IsZero() {
				status.Since = c.Since.UnixMilli()
			}
			clients[i] = status
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	leased, err := leasedServers(r.Context(), a, clients, func(c clientStatus) string { return c.Server })
	if err != nil {
		return nil, err
	}
	for i := range clients {
		clients[i].Online = leased[clients[i].Server]
	}
	clients = slices.DeleteFunc(clients, func(c clientStatus) bool { return c.Client == "" })
	online := slices.ContainsFunc(clients, func(c clientStatus) bool { return c.Online })
	return struct {
		User    string         `json:"user"`
		Online  bool           `json:"online"`
		Revoked int64          `json:"revoked,omitempty"` // Unix ms
		Clients []clientStatus `json:"clients"`
	}{user, online, revoked, clients}, nil
}

// queryUsers answers which users of a list are online.
func (a api) queryUsers(r *http.Request) (any, error) {
	var body struct {
		Users nameList `json:"users" required:"true"`
	}
	err := decodeBody(r.Body, &body)
	if err == nil && (len(body.Users) == 0 || len(body.Users) > MaxPage) {
		err = wire.Errorf(wire.BadRequest, "users: %d names, between 1 and %d are allowed", len(body.Users), MaxPage)
	}
	if err != nil {
		return nil, err
	}
	type row struct {
		User   string `json:"user"`
		Online bool   `json:"online"`
	}
	for _, user := range body.Users {
		if err := wire.CheckName("user", user); err != nil {
			return nil, err
		}
	}
	found, err := a.Registry.Users(r.Context(), body.Users)
	if err != nil {
		return nil, err
	}
	leased, err := leasedServers(r.Context(), a, slices.Concat(found...), func(b registry.Binding) string { return b.Server })
	if err != nil {
		return nil, err
	}
	rows := make([]row, len(body.Users))
	for i, bindings := range found {
		rows[i] = row{body.Users[i], slices.ContainsFunc(bindings, func(b registry.Binding) bool { return leased[b.Server] })}
	}
	return map[string]any{"users": rows}, nil
}

// presence answers a page of the members of a channel. With limit=0 it answers their number only.
func (a api) presence(r *http.Request) (any, error) {
	name, err := PathName(r, "channel")
	cursor, limit, err1 := page(r, 0)
	if err == nil {
		err = a.checkAllowed(namespace.Presence, name)
	}
	if err := cmp.Or(err, err1); err != nil {
		return nil, err
	}
	found, err := a.Presence.Page(r.Context(), name, cursor, limit, 0)
	if err != nil {
		return nil, err
	}
	answer := map[string]any{"channel": name, "count": found.Count, "clients": found.BackendMembers()}
	if found.Users >= 0 {
		answer["users"] = found.Users
	}
	if found.Next != "" {
		answer["cursor"], answer["next"] = found.Next, found.Next // next is the former name
	}
	return answer, nil
}

func (a api) servers(r *http.Request) (any, error) {
	type row struct {
		Server      string `json:"server"`
		Host        string `json:"host"`
		Version     string `json:"version"`
		StartedAt   int64  `json:"started_at"`  // ms since 1970
		LastActive  int64  `json:"last_active"` // ms since 1970
		Connections int64  `json:"connections"`
		Users       int64  `json:"users"`
		Channels    int64  `json:"channels"`
	}
	rows := []row{}
	for _, s := range a.Cluster.ServerNumbers(r.Context()) {
		rows = append(rows, row{
			s.ID, s.Host, s.Version, s.StartedAt.UnixMilli(), s.LastActive.UnixMilli(),
			s.Connections, s.Users, s.Channels,
		})
	}
	return map[string]any{"servers": rows}, nil
}

// leasedServers returns the servers of the items that hold a lease now. The clients of a server
// without a lease are offline, although it may still be in their bindings: a killed server cannot
// remove these.
func leasedServers[T any](ctx context.Context, a api, items []T, server func(T) string) (map[string]bool, error) {
	var servers []string
	for _, item := range items {
		if s := server(item); s != "" {
			servers = append(servers, s)
		}
	}
	slices.Sort(servers)
	return a.Presence.LeasedServers(ctx, slices.Compact(servers))
}
