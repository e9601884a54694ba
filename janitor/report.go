package janitor

import (
	"sync/atomic"

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

func (r Report) plus(o Report) Report {
	return Report{
		Suspected: r.Suspected + o.Suspected, DeclaredDead: r.DeclaredDead + o.DeclaredDead, Forgotten: r.Forgotten + o.Forgotten,
		Channels: r.Channels + o.Channels, Clients: r.Clients + o.Clients, Orphans: r.Orphans + o.Orphans,
		Trimmed: r.Trimmed + o.Trimmed, Pruned: r.Pruned + o.Pruned, States: r.States + o.States, Changed: r.Changed + o.Changed,
		Created: r.Created + o.Created, Sent: r.Sent + o.Sent, DeadLettered: r.DeadLettered + o.DeadLettered, DryRun: r.DryRun,
	}
}

// MarshalZerologObject implements zerolog.LogObjectMarshaler. It omits zero counts.
func (r Report) MarshalZerologObject(e *zerolog.Event) {
	for _, f := range []struct {
		name  string
		count int
	}{
		{"suspected", r.Suspected}, {"declared_dead", r.DeclaredDead}, {"forgotten", r.Forgotten},
		{"channels", r.Channels}, {"clients", r.Clients}, {"orphans", r.Orphans},
		{"trimmed", r.Trimmed}, {"pruned", r.Pruned}, {"states", r.States}, {"changed", r.Changed},
		{"created", r.Created}, {"sent", r.Sent}, {"dead_lettered", r.DeadLettered},
	} {
		if f.count != 0 {
			e.Int(f.name, f.count)
		}
	}
	if r.DryRun {
		e.Bool("dry_run", true)
	}
}

// counters are the counts of a Report, updated by many goroutines.
type counters struct {
	stale nameSet // live servers with subscribers of states that the round has changed

	suspected, declaredDead, forgotten, channels, clients, orphans, trimmed, pruned, states, changed, created, sent, deadLettered atomic.Int64
}

func (c *counters) report(dryRun bool) Report {
	return Report{
		Suspected: int(c.suspected.Load()), DeclaredDead: int(c.declaredDead.Load()), Forgotten: int(c.forgotten.Load()),
		Channels: int(c.channels.Load()), Clients: int(c.clients.Load()), Orphans: int(c.orphans.Load()),
		Trimmed: int(c.trimmed.Load()), Pruned: int(c.pruned.Load()), States: int(c.states.Load()), Changed: int(c.changed.Load()),
		Created: int(c.created.Load()), Sent: int(c.sent.Load()), DeadLettered: int(c.deadLettered.Load()), DryRun: dryRun,
	}
}
