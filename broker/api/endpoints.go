package api

// Endpoint is a call of /v1, as the tests compare it with the OpenAPI document.
type Endpoint struct {
	Pattern string // of an http.ServeMux, with method and path
	Scope   string // the scope that an API key needs; "" for any key
	Public  bool   // no key is needed
}

// Endpoints returns all calls of /v1, with those of the extensions.
func Endpoints(calls []Call) []Endpoint {
	all := api{Options: Options{Calls: calls}}.endpoints()
	list := make([]Endpoint, len(all))
	for i, e := range all {
		list[i] = Endpoint{e.pattern, e.scope, e.public}
	}
	return list
}
