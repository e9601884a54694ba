package backend

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Device is a client of a user.
type Device struct {
	Client string `json:"client"`
	Server string `json:"server,omitempty"`
	Online bool   `json:"online"`
	Since  int64  `json:"since,omitempty"` // Unix ms
	Queued int    `json:"queued"`          // messages in its queue
}

// User is a user with the clients that the store knows.
type User struct {
	User    string   `json:"user"`
	Online  bool     `json:"online"`
	Revoked int64    `json:"revoked,omitempty"` // tokens issued before it are revoked, Unix ms; 0 for none
	Clients []Device `json:"clients"`
}

// User returns the clients of a user. A user without any is not an error.
func (c *Client) User(ctx context.Context, user string) (User, error) {
	return get[User](ctx, c, "/v1/users/"+url.PathEscape(user), nil)
}

// OnlineUser is a user that is online.
type OnlineUser struct {
	User    string   `json:"user"`
	Clients []string `json:"clients"` // ids of those that are connected
}

// UserPage is a page of the users that are online. A page may have no users although more follow.
type UserPage struct {
	Count       int `json:"count"` // users of all servers; a user on two servers counts twice
	Connections int `json:"connections"`
	// Distinct is the number of users, each counted once, a few seconds old. Only the first page has
	// it. Nil means that it is not known yet: a server has just started, or is of an older version.
	Distinct *int `json:"distinct,omitempty"`
	// Exact says that Distinct is exact. Otherwise it is an estimate with a standard error of 0.8 %.
	Exact   bool         `json:"exact,omitempty"`
	Users   []OnlineUser `json:"users"`
	Cursor  string       `json:"cursor,omitempty"` // of the next page, "" for the last one
	Partial bool         `json:"partial,omitempty"`
}

// Users returns users that are online.
func (c *Client) Users(ctx context.Context, p PageQuery) (UserPage, error) {
	return get[UserPage](ctx, c, "/v1/users", p.values())
}

// UserCount is like Users, without the users.
func (c *Client) UserCount(ctx context.Context) (UserPage, error) {
	return get[UserPage](ctx, c, "/v1/users", url.Values{"limit": {"0"}})
}

// Online reports which of up to 1000 users are online.
func (c *Client) Online(ctx context.Context, users ...string) (map[string]bool, error) {
	var answer struct {
		Users []struct {
			User   string `json:"user"`
			Online bool   `json:"online"`
		} `json:"users"`
	}
	body := map[string][]string{"users": users}
	err := c.Call(ctx, Request{Method: http.MethodPost, Path: "/v1/users/query", Body: body}, &answer)
	online := make(map[string]bool, len(answer.Users))
	for _, u := range answer.Users {
		online[u.User] = u.Online
	}
	return online, err
}

// ClientStatus is a client and its connection.
type ClientStatus struct {
	Device
	User     string   `json:"user,omitempty"`
	Address  string   `json:"address,omitempty"`  // of the peer
	Expires  int64    `json:"expires,omitempty"`  // end of the token, in seconds since 1970
	Channels []string `json:"channels,omitempty"` // its subscriptions, without system channels
}

func clientPath(id, rest string) string { return "/v1/clients/" + url.PathEscape(id) + rest }

// Client returns a client by its full id. The error has the code client.NotFound if the store does
// not know it.
func (c *Client) Client(ctx context.Context, id string) (ClientStatus, error) {
	return get[ClientStatus](ctx, c, clientPath(id, ""), nil)
}

// DisconnectUser closes the connections of a user, and returns their number.
func (c *Client) DisconnectUser(ctx context.Context, user string) (int, error) {
	return c.disconnect(ctx, "/v1/users/"+url.PathEscape(user))
}

// DisconnectClient closes the connection of a client, and returns 1 if there was one.
func (c *Client) DisconnectClient(ctx context.Context, id string) (int, error) {
	return c.disconnect(ctx, clientPath(id, ""))
}

func (c *Client) disconnect(ctx context.Context, path string) (int, error) {
	var answer struct {
		Disconnected int `json:"disconnected"`
	}
	err := c.Call(ctx, Request{Method: http.MethodPost, Path: path + "/disconnect"}, &answer)
	return answer.Disconnected, err
}

// Usage is how much of a budget is used.
type Usage struct {
	Used int `json:"used"`
	Max  int `json:"max"`
}

// Budget is how many objects a user has made as a client, and may make, by kind: rooms, boards and
// avatars.
type Budget struct {
	User    string           `json:"user"`
	Objects map[string]Usage `json:"objects"`
	// Stored is what the user's publishes have used of the limits bytes and channels, on all
	// instances. It is refilled with time. Limits that are off are missing.
	Stored map[string]Usage `json:"stored"`
}

// Budget returns the budget of a user. Kinds that the brokers do not have are missing.
func (c *Client) Budget(ctx context.Context, user string) (Budget, error) {
	return get[Budget](ctx, c, "/v1/users/"+url.PathEscape(user)+"/budget", nil)
}

// Forgotten is the answer to ForgetUser: how many objects were removed, by kind.
type Forgotten struct {
	User    string         `json:"user"`
	Removed map[string]int `json:"removed"`
}

// ForgetUser removes what a user has in the kit: the user leaves its rooms, and its scores, avatars
// and session documents are removed. Call it when the user does not exist any more.
func (c *Client) ForgetUser(ctx context.Context, user string) (answer Forgotten, err error) {
	err = c.Call(ctx, Request{Method: http.MethodPost, Path: "/v1/users/" + url.PathEscape(user) + "/forget"}, &answer)
	return answer, err
}

// Revocation says which tokens RevokeUser and RevokeClient revoke.
type Revocation struct {
	// Before is the time before which the tokens were issued. Zero means now, on the store's clock.
	Before time.Time
	// Durable makes the call wait until a replica has the revocation. If none confirms in time, the
	// error has the code client.Unavailable, and the tokens are revoked.
	Durable bool
}

// Revoked is the answer to RevokeUser and RevokeClient.
type Revoked struct {
	Before       int64 `json:"before"`       // the time in force, perhaps that of an earlier call, Unix ms
	Until        int64 `json:"until"`        // when the store forgets it, Unix ms
	Disconnected int   `json:"disconnected"` // connections that were closed
	// Pending is the number of servers that did not answer in time. They close their connections at
	// their next beat.
	Pending int `json:"pending,omitempty"`
}

// RevokeUser makes the broker refuse tokens of a user, and close the connections that used them.
func (c *Client) RevokeUser(ctx context.Context, user string, r Revocation) (Revoked, error) {
	return c.revoke(ctx, "/v1/users/"+url.PathEscape(user), r)
}

// RevokeClient is RevokeUser for one client of the user, by its full id.
func (c *Client) RevokeClient(ctx context.Context, id string, r Revocation) (Revoked, error) {
	return c.revoke(ctx, clientPath(id, ""), r)
}

func (c *Client) revoke(ctx context.Context, path string, r Revocation) (answer Revoked, err error) {
	body := struct {
		Before  int64 `json:"before,omitempty"`
		Durable bool  `json:"durable,omitempty"`
	}{Durable: r.Durable}
	if !r.Before.IsZero() {
		body.Before = r.Before.UnixMilli()
	}
	err = c.Call(ctx, Request{Method: http.MethodPost, Path: path + "/revoke", Body: body}, &answer)
	return answer, err
}

// Server is a live instance.
type Server struct {
	Server      string `json:"server"`
	Host        string `json:"host"`
	Version     string `json:"version"`
	StartedAt   int64  `json:"started_at"`  // Unix ms
	LastActive  int64  `json:"last_active"` // Unix ms
	Connections int64  `json:"connections"`
	Users       int64  `json:"users"`
	Channels    int64  `json:"channels"`
}

// Servers returns the live instances.
func (c *Client) Servers(ctx context.Context) ([]Server, error) {
	var answer struct {
		Servers []Server `json:"servers"`
	}
	err := c.Call(ctx, Request{Method: http.MethodGet, Path: "/v1/servers"}, &answer)
	return answer.Servers, err
}
