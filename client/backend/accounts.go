package backend

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"switchboard/client/account"
)

// Accounts are the accounts of a broker, see docs/accounts.md. Their calls need a key with the
// scope admin; package client/account has the calls of users. The errors of all calls are an
// [*Error].
type Accounts struct{ *Client }

// AccountPage is a page of accounts, the newest first.
type AccountPage struct {
	Accounts []account.Account `json:"accounts"`
	Cursor   string            `json:"cursor,omitempty"` // of the next page, "" for the last one
	Total    int               `json:"total"`
}

// AccountEvent is an event in the history of an account.
type AccountEvent struct {
	N       int64  `json:"n"`
	At      int64  `json:"at"`   // Unix ms
	Type    string `json:"type"` // such as registered, login or locked, see docs/accounts.md
	Address string `json:"address,omitempty"`
	Name    string `json:"name,omitempty"` // the former name
}

func accountPath(id, rest string) string { return "/v1/accounts/" + url.PathEscape(id) + rest }

// List returns a page of accounts. state is open, locked, deleted, all, or "" for those that are
// not deleted.
func (a Accounts) List(ctx context.Context, state string, p PageQuery) (AccountPage, error) {
	v := p.values()
	if state != "" {
		v.Set("state", state)
	}
	return get[AccountPage](ctx, a.Client, "/v1/accounts", v)
}

// Get returns the account with an id.
func (a Accounts) Get(ctx context.Context, id string) (account.Account, error) {
	return get[account.Account](ctx, a.Client, accountPath(id, ""), nil)
}

// Named returns the account with a name.
func (a Accounts) Named(ctx context.Context, name string) (account.Account, error) {
	return get[account.Account](ctx, a.Client, "/v1/accounts", url.Values{"name": {name}})
}

// History returns the last 100 events of an account, the newest first.
func (a Accounts) History(ctx context.Context, id string) ([]AccountEvent, error) {
	answer, err := get[struct {
		Events []AccountEvent `json:"events"`
	}](ctx, a.Client, accountPath(id, "/history"), nil)
	return answer.Events, err
}

// Create makes an account. It needs no key, and ends up with a login that nothing uses.
func (a Accounts) Create(ctx context.Context, r account.Registration) (account.Account, error) {
	var session struct {
		Account account.Account `json:"account"`
	}
	err := a.Call(ctx, Request{Method: http.MethodPost, Path: "/v1/accounts", Body: r}, &session)
	return session.Account, err
}

// Lock ends all logins of an account, and refuses new ones.
func (a Accounts) Lock(ctx context.Context, id string) (account.Account, error) {
	return a.change(ctx, id, "/lock")
}

// Unlock ends a lock.
func (a Accounts) Unlock(ctx context.Context, id string) (account.Account, error) {
	return a.change(ctx, id, "/unlock")
}

// Delete marks an account as deleted.
func (a Accounts) Delete(ctx context.Context, id string) (account.Account, error) {
	return a.change(ctx, id, "/delete")
}

// Restore ends a deletion.
func (a Accounts) Restore(ctx context.Context, id string) (account.Account, error) {
	return a.change(ctx, id, "/restore")
}

// change makes a call whose repetition changes nothing.
func (a Accounts) change(ctx context.Context, id, action string) (changed account.Account, err error) {
	err = a.Call(ctx, Request{Method: http.MethodPost, Path: accountPath(id, action)}, &changed)
	return changed, err
}

// SetPassword replaces the password, and ends all logins.
func (a Accounts) SetPassword(ctx context.Context, id, password string) (changed account.Account, err error) {
	body := map[string]string{"password": password}
	err = a.Call(ctx, Request{Method: http.MethodPost, Path: accountPath(id, "/password"), Body: body}, &changed)
	return changed, err
}

// Rename changes the name. The code of the error is client.Conflict if it is taken. A version is
// the one that the account must have.
func (a Accounts) Rename(ctx context.Context, id, name string, version ...int64) (changed account.Account, err error) {
	body := map[string]string{"name": name}
	err = a.Call(ctx, Request{Method: http.MethodPatch, Path: accountPath(id, ""), Header: condition(version...), Body: body}, &changed)
	return changed, err
}

// Sessions are JSON documents of users that end by themselves.
type Sessions struct{ *Client }

// Session is the document of a user.
type Session struct {
	User    string          `json:"user"`
	Version int64           `json:"version"`
	Until   int64           `json:"until"` // Unix ms
	Data    json.RawMessage `json:"data"`
}

func sessionPath(user string) string { return "/v1/sessions/" + url.PathEscape(user) }

// Get returns the session of a user.
func (s Sessions) Get(ctx context.Context, user string) (Session, error) {
	return get[Session](ctx, s.Client, sessionPath(user), nil)
}

// Put replaces the session of a user with data, encoded as JSON. A ttl of 0 means an hour. A
// version other than 0 is the one that the session must have; see also Absent and Exists.
func (s Sessions) Put(ctx context.Context, user string, data any, ttl time.Duration, version int64) (put Session, err error) {
	body, err := json.Marshal(data) // nil is the document null
	if err != nil {
		return put, err
	}
	err = s.Call(ctx, Request{
		Method: http.MethodPut, Path: sessionPath(user), Query: values("ttl_ms", number(ttl.Milliseconds())), Body: json.RawMessage(body),
		Header: condition(version),
	}, &put)
	return put, err
}

// Delete ends the session of a user. A version is the one that it must have.
func (s Sessions) Delete(ctx context.Context, user string, version ...int64) error {
	return s.Call(ctx, Request{Method: http.MethodDelete, Path: sessionPath(user), Header: condition(version...)}, nil)
}
