package api

import (
	"cmp"
	"net/http"
	"slices"
)

// Stats are the numbers of one server. The counters count since its start.
type Stats struct {
	Server      string `json:"server"`
	At          int64  `json:"at"`         // when the numbers were read, on the server's clock, ms since 1970
	StartedAt   int64  `json:"started_at"` // ms since 1970
	Connections int    `json:"connections"`
	// MaxConnections is the most connections that the server accepts.
	MaxConnections int     `json:"max_connections,omitempty"`
	Users          int     `json:"users"`
	Channels       int     `json:"channels"`
	Subscriptions  int     `json:"subscriptions"`
	Accepted       int64   `json:"accepted"`    // counter: connections
	Closed         int64   `json:"closed"`      // counter: connections
	Delivered      int64   `json:"delivered"`   // counter: messages written to sockets
	Pushes         int64   `json:"pushes"`      // counter: accepted targets of pushes
	PushErrors     int64   `json:"push_errors"` // counter: refused targets of pushes
	Append         Latency `json:"append"`      // of the store, for one message
	Drain          Latency `json:"drain"`       // from a channel becoming dirty until it is read
	RSS            int64   `json:"rss"`         // resident memory in bytes, 0 where it is not known
	// CertificateEnds is when the first certificate of the server's ports ends, ms since 1970. 0 means
	// that it has none.
	CertificateEnds int64 `json:"certificate_ends,omitempty"`
}

// Latency describes a duration in seconds.
type Latency struct {
	Count int64 `json:"count"` // counter
	// P50 and P99 are quantiles of about the last 10 s. Nil means that nothing was observed.
	P50 *float64 `json:"p50,omitempty"`
	P99 *float64 `json:"p99,omitempty"`
}

// stats answers the numbers of all live servers.
func (a api) stats(r *http.Request) (any, error) {
	list, partial := a.Cluster.Stats(r.Context())
	slices.SortFunc(list, func(x, y Stats) int { return cmp.Compare(x.Server, y.Server) })
	return struct {
		Servers []Stats `json:"servers"`
		Partial bool    `json:"partial"`
	}{list, partial}, nil
}

// health answers what needs the attention of an operator.
func (a api) health(r *http.Request) (any, error) { return a.Cluster.Health(r.Context()), nil }
