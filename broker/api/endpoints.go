package api

import "slices"

// Endpoint is a call of /v1, as the tests compare it with the OpenAPI document.
type Endpoint struct {
	Pattern string // of an http.ServeMux, with method and path
	Scope   string // the scope that an API key needs; "" for any key
	Public  bool   // no key is needed

	// What requests may have, see Call.
	Query      []string
	Conditions []string // names of headers
	Body       bool
}

// Endpoints returns all calls of /v1, with those of the extensions.
func Endpoints(calls []Call) []Endpoint {
	all := api{Options: Options{Calls: calls}}.endpoints()
	list := make([]Endpoint, len(all))
	for i, e := range all {
		list[i] = Endpoint{e.pattern, e.scope, e.public, slices.Clone(e.query), slices.Clone(e.conditions.headers()), e.body}
	}
	return list
}
