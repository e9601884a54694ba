package api

import "net/http"

// Key describes the API key of a call.
type Key struct {
	// ID identifies the key. It is "" if no keys are configured.
	ID string `json:"-"`
	// Name is the name of its entry, or its place among the entries.
	Name string `json:"name"`
	// Scopes are the scopes of all calls that it may make. Admin includes the others.
	Scopes []string `json:"scopes"`
}

// Self describes this server.
type Self struct {
	Server    string   `json:"server"`
	Version   string   `json:"version"`
	StartedAt int64    `json:"started_at"` // ms since 1970
	Open      bool     `json:"open"`       // no API keys are configured
	Tokens    bool     `json:"tokens"`     // token keys are configured
	Redis     bool     `json:"redis"`      // the store is shared with other servers
	Kit       []string `json:"kit"`        // names of the extensions
	Webhooks  bool     `json:"webhooks"`   // the backend receives events
}

// self answers what the caller may do, and on which kind of server.
func (a api) self(r *http.Request) (any, error) {
	return struct {
		Self
		Key Key `json:"key"`
	}{a.Self(), a.Key(r.Header.Get("Authorization"))}, nil
}
