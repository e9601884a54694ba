package api

import (
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"switchboard/internal/strict"
	"switchboard/internal/wire"
)

// The sizes of pages, in items. All lists have them.
const (
	DefaultPage = 100
	MaxPage     = 1000
)

// Conditions says on which headers a call can depend.
type Conditions int

// The conditions of calls.
const (
	NoConditions  Conditions = iota
	IfMatch                  // If-Match
	IfMatchOrNone            // If-Match, and If-None-Match
)

// Headers returns the names of the headers.
func (c Conditions) Headers() []string { return []string{"If-Match", "If-None-Match"}[:c] }

// checkRequest returns an error if a request has what its call does not take: parameters of the
// query, conditions, or a body. Otherwise a mistyped parameter would be ignored without notice.
func (c *Call) checkRequest(r *http.Request) error {
	if err := c.checkQuery(r.URL.RawQuery); err != nil {
		return err
	}
	if r.Method == http.MethodGet { // caches send conditions, and a body has no meaning
		return nil
	}
	for _, name := range IfMatchOrNone.Headers() {
		if r.Header.Get(name) != "" && !slices.Contains(c.Conditions.Headers(), name) {
			return wire.Errorf(wire.BadRequest, "%s: this call does not take the condition", name)
		}
	}
	if c.Body || r.ContentLength == 0 {
		return nil
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return readError(err)
	}
	if strings.TrimSpace(string(text)) == "" {
		return nil
	}
	return strict.Decode(text, &struct{}{})
}

func (c *Call) checkQuery(raw string) error {
	if raw == "" {
		return nil
	}
	query, err := url.ParseQuery(raw)
	if err != nil {
		return wire.Errorf(wire.BadRequest, "the query cannot be read: %.200v", err)
	}
	for name, values := range query {
		switch {
		case !slices.Contains(c.Query, name):
			return wire.Errorf(wire.BadRequest, "%.200s: this call has no such parameter", name)
		case len(values) > 1:
			return wire.Errorf(wire.BadRequest, "%s: the parameter appears twice", name)
		}
	}
	return nil
}

// QueryInt returns a number of the query string, or fallback if it is absent.
func QueryInt(r *http.Request, name string, fallback, lowest, highest int64) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return fallback, nil
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v < lowest || v > highest {
		return 0, wire.Errorf(wire.BadRequest, "%s: %.40q is not a number within %d and %d", name, text, lowest, highest)
	}
	return v, nil
}

// page returns the cursor and the limit of a call that lists. The limit is at least lowest: 1, or 0
// for a call that can be asked for no items.
func page(r *http.Request, lowest int64) (cursor string, limit int, err error) {
	n, err := QueryInt(r, "limit", DefaultPage, lowest, MaxPage)
	return r.URL.Query().Get("cursor"), int(n), err
}

// pathClient returns the id of the client in the path of a request.
func pathClient(r *http.Request) (string, error) {
	client := wire.ClientID(r.PathValue("user"), r.PathValue("client"))
	return client, wire.CheckClientID(client)
}

// pathOwner returns the user in the path of a request, or the client and its user.
func pathOwner(r *http.Request) (user, client string, err error) {
	if r.PathValue("client") == "" {
		user, err = PathName(r, "user")
		return user, "", err
	}
	client, err = pathClient(r)
	return wire.UserOf(client), client, err
}

// PathName returns the name in the path of a request, such as a user. The error says why it is not
// valid.
func PathName(r *http.Request, kind string) (string, error) {
	name := r.PathValue(kind)
	return name, wire.CheckName(kind, name)
}
