// Package health finds what needs the attention of an operator: servers that died, janitors that do
// not work, events that the backend does not accept, and limits that are close.
package health

import (
	"cmp"
	"slices"
	"time"

	"switchboard/janitor/heartbeat"
	"switchboard/registry"
)

// Level says how urgent a finding is.
type Level string

// The levels.
const (
	Problem Level = "problem" // something does not work, or will stop within days
	Warning Level = "warning" // something to look at
)

// Status is the most urgent level of all findings.
type Status string

// The values of Status.
const (
	Healthy   Status = "healthy"
	Attention Status = "warning"
	Failing   Status = "problem"
)

// A Finding is something that needs attention.
type Finding struct {
	Level Level `json:"level"`
	// Code is one of the codes of docs/operations.md.
	Code string `json:"code"`
	// Subject is the server, janitor, Redis or URL that the finding is about.
	Subject string `json:"subject,omitempty"`
	At      int64  `json:"at,omitempty"` // when it happened, or will happen, ms since 1970; 0 if it is not known
	Message string `json:"message"`      // what is wrong
	Remedy  string `json:"remedy"`       // what to do
}

// Report is the state of the whole system.
type Report struct {
	Status Status `json:"status"`
	At     int64  `json:"at"` // when it was found, on the server's clock, ms since 1970
	// Findings are ordered: problems first, then by code and subject.
	Findings []Finding `json:"findings"`
}

// Facts is what the findings follow from.
type Facts struct {
	Now time.Time
	// Lease is how long a server counts as live after a heartbeat.
	Lease time.Duration
	// Unavailable are the errors of parts of the store that could not be read.
	Unavailable []error

	Servers []registry.Server // those with a lease
	Listed  []string          // ids of all servers, with or without a lease
	Died    []registry.Death
	Loads   []Load   // of the servers that answered
	Silent  []string // ids of servers with a lease that did not answer

	// Shared reports whether there can be other servers and janitors: the store is Redis.
	Shared   bool
	Janitors []heartbeat.Janitor
	// JanitorsUnknown reports that Janitors could not be read: that it is empty means nothing.
	JanitorsUnknown bool

	Redis []Memory

	Webhooks *Webhooks // nil for none
}

// Load is what a server reports about itself.
type Load struct {
	Server         string
	Connections    int
	MaxConnections int       // 0 if it is not known
	Certificate    time.Time // the first end of its certificates; zero for none
}

// Memory is the memory of a Redis server.
type Memory struct {
	Server    string
	Used, Max int64  // bytes; Max is 0 for no limit
	Policy    string // maxmemory-policy, "" if it is not known
}

// Webhooks describes the events for the backend.
type Webhooks struct {
	URL      string
	Waiting  int
	Dead     int
	Oldest   time.Time // of the events that wait; zero for none
	Attempts int       // failed ones since the last successful one
	RetryAt  time.Time // of the next attempt; zero for now
	Status   int       // of the last answer; 0 for none
	Error    string    // why there was no answer
}

// Check returns what the facts mean.
func Check(f Facts) Report {
	found := slices.Concat(f.store(), f.servers(), f.janitors(), f.webhooks(), f.redis(), f.loads())
	slices.SortStableFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Subject, b.Subject))
	})
	r := Report{Status: Healthy, At: f.Now.UnixMilli(), Findings: append([]Finding{}, found...)}
	if len(found) > 0 {
		r.Status = Status(found[0].Level)
	}
	return r
}

// store returns the findings about parts of the store that could not be read.
func (f *Facts) store() (found []Finding) {
	for _, err := range f.Unavailable {
		found = append(found, Finding{
			Level: Problem, Code: "store_unavailable", Message: err.Error() + ".",
			Remedy: "Make Redis reachable. Without it, pushes are refused, and this list is not complete.",
		})
	}
	return found
}
