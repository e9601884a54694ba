package backend

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

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

func clientPath(id, rest string) string { return "/v1/clients/" + url.PathEscape(id) + rest }

// Revocation says which tokens RevokeUser and RevokeClient revoke.
type Revocation struct {
	// Before is the time before which the tokens were issued. Zero means now, on the store's clock.
	Before time.Time
	// Durable makes the call wait until a replica has the revocation. If none confirms in time, the
	// error has the code client.Unavailable, and the tokens are revoked.
	Durable bool
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
