package api

import (
	"fmt"
	"net/http"

	"switchboard/internal/wire"
)

// Call is an HTTP call.
type Call struct {
	// Pattern is the pattern of an http.ServeMux with a method and a path under /v1, such as
	// "GET /v1/rooms/{room}".
	Pattern string
	// Scope is the scope that the API key needs: ScopePush, ScopeRead or ScopeAdmin. "" means any key.
	Scope string
	// Public opens the call to callers without an API key. The call itself must bound what they may
	// do.
	Public bool
	// Query are the names of the parameters of the query. A request with another one is refused.
	Query []string
	// Conditions says which conditions the call takes. A request with another one is refused.
	Conditions Conditions
	// Body says that Handle reads the body. Otherwise it must be empty, or {}.
	Body bool
	// Handle returns the answer, which is encoded as JSON. The errors are those of all calls, see
	// Answer: *wire.Error, *wire.DetailedError, *state.Refusal, or an error of the store. A body is
	// read with [DecodeBody].
	Handle func(r *http.Request) (any, error)
}

// The scopes of API keys.
const (
	ScopePush  = "push"  // calls that send messages to clients or change states
	ScopeRead  = "read"  // calls that read
	ScopeAdmin = "admin" // calls that disconnect clients or change accounts
)

// DecodeBody decodes the body of a request into v. Unknown members and text after the object are
// errors.
func DecodeBody(r *http.Request, v any) error { return decodeBody(r.Body, v) }

// public returns a handler that serves e without an API key. Pages of other origins may call it if
// their origin is allowed, as the CORS protocol says (Fetch Standard §3.3).
func (a api) public(e endpoint) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Origin")
		origin := r.Header.Get("Origin")
		if refusal := a.refusePage(r); refusal != "" {
			a.writeError(w, wire.Errorf(wire.Forbidden, "%s", refusal))
			return
		}
		if origin != "" {
			w.Header().Set("Access-Control-Allow-Origin", origin)
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxPublicBody)
		if a.BeginRead != nil {
			ctx, end, err := a.BeginRead(r)
			if err != nil {
				a.writeError(w, err)
				return
			}
			defer end()
			r = r.WithContext(ctx)
		}
		a.handle(e, w, r, nil)
	}
}

// refusePage returns why a public call is refused because of the page that makes it, or "".
func (a api) refusePage(r *http.Request) string {
	switch origin := r.Header.Get("Origin"); {
	case a.RefusePage != nil:
		return a.RefusePage(r)
	case origin != "":
		return fmt.Sprintf("origin %.200s is not allowed", origin)
	}
	return ""
}

// maxPublicBody is the most bytes of the body of a call without an API key.
const maxPublicBody = 16 << 10

// preflight answers a CORS preflight request for a public call.
func (a api) preflight() http.HandlerFunc {
	return a.public(endpoint{serve: func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE")
		h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, If-Match")
		h.Set("Access-Control-Max-Age", "7200") // seconds
		w.WriteHeader(http.StatusNoContent)
	}})
}
