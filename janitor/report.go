package janitor

import (
	"sync"

	"github.com/rs/zerolog"
)

// A Report is the result of a round. In a dry run, it is what the round would do.
type Report struct {
	Suspected    int // servers seen without a lease for the first time
	DeclaredDead int // servers declared dead
	Forgotten    int // servers that were removed after the cleanup
	Channels     int // channels released from dead servers
	Clients      int // clients released from dead servers
	Orphans      int // servers, neither listed nor leased, removed from channels
	Trimmed      int // messages deleted from channels
	Pruned       int // channels without servers removed from the list
	States       int // changes of channel states: fields that ended, or whose owners have left
	Changed      int // what Options.Rounds changed
	Created      int // events created
	Sent         int // events accepted by the backend
	DeadLettered int // events moved to the dead letters
	DryRun       bool
}

// Empty reports whether the round had nothing to do.
func (r Report) Empty() bool { return r == Report{DryRun: r.DryRun} }

// A count is one of the numbers of a Report.
type count struct {
	name string // in the log
	n    *int
}

func (r *Report) counts() []count {
	return []count{
		{"suspected", &r.Suspected}, {"declared_dead", &r.DeclaredDead}, {"forgotten", &r.Forgotten},
		{"channels", &r.Channels}, {"clients", &r.Clients}, {"orphans", &r.Orphans},
		{"trimmed", &r.Trimmed}, {"pruned", &r.Pruned}, {"states", &r.States}, {"changed", &r.Changed},
		{"created", &r.Created}, {"sent", &r.Sent}, {"dead_lettered", &r.DeadLettered},
	}
}

func (r *Report) add(o Report) {
	more := o.counts()
	for i, c := range r.counts() {
		*c.n += *more[i].n
	}
}

// MarshalZerologObject implements zerolog.LogObjectMarshaler. It omits zero counts.
func (r Report) MarshalZerologObject(e *zerolog.Event) {
	for _, c := range r.counts() {
		if *c.n != 0 {
			e.Int(c.name, *c.n)
		}
	}
	if r.DryRun {
		e.Bool("dry_run", true)
	}
}

// counters are the Report of a round, updated by many goroutines.
type counters struct {
	stale nameSet // live servers with subscribers of states that the round has changed

	mu     sync.Mutex // guards the field below
	report Report
}

func (c *counters) add(r Report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.add(r)
}
