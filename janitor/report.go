package janitor

import (
	"sync/atomic"

	"github.com/rs/zerolog"
)

// Report is what a round did, or in a dry run would do.
type Report struct {
	Suspected int // servers seen without a lease for the first time
	Buried    int // servers declared dead
	Forgotten int // servers whose cleaning is complete
	Channels  int // channels released from dead servers
	Clients   int // clients released from dead servers
	Orphans   int // servers that nobody knows, taken out of channels
	Trimmed   int // messages
	Pruned    int // channels without servers taken out of the list
	Told      int // events made
	Sent      int // events that the backend has taken
	Dead      int // events that were given up
	DryRun    bool
}

// Empty reports whether there was nothing to do.
func (r Report) Empty() bool { return r == Report{DryRun: r.DryRun} }

func (r Report) plus(o Report) Report {
	return Report{
		Suspected: r.Suspected + o.Suspected, Buried: r.Buried + o.Buried, Forgotten: r.Forgotten + o.Forgotten,
		Channels: r.Channels + o.Channels, Clients: r.Clients + o.Clients, Orphans: r.Orphans + o.Orphans,
		Trimmed: r.Trimmed + o.Trimmed, Pruned: r.Pruned + o.Pruned,
		Told: r.Told + o.Told, Sent: r.Sent + o.Sent, Dead: r.Dead + o.Dead, DryRun: r.DryRun,
	}
}

// MarshalZerologObject implements zerolog.LogObjectMarshaler: what is zero is left out.
func (r Report) MarshalZerologObject(e *zerolog.Event) {
	for _, f := range []struct {
		name  string
		count int
	}{
		{"suspected", r.Suspected}, {"buried", r.Buried}, {"forgotten", r.Forgotten},
		{"channels", r.Channels}, {"clients", r.Clients}, {"orphans", r.Orphans},
		{"trimmed", r.Trimmed}, {"pruned", r.Pruned},
		{"told", r.Told}, {"sent", r.Sent}, {"dead", r.Dead},
	} {
		if f.count != 0 {
			e.Int(f.name, f.count)
		}
	}
	if r.DryRun {
		e.Bool("dry_run", true)
	}
}

// tally is a Report in the making, counted by many goroutines.
type tally struct {
	suspected, buried, forgotten, channels, clients, orphans, trimmed, pruned, told, sent, dead atomic.Int64
}

func (t *tally) report(dryRun bool) Report {
	return Report{
		Suspected: int(t.suspected.Load()), Buried: int(t.buried.Load()), Forgotten: int(t.forgotten.Load()),
		Channels: int(t.channels.Load()), Clients: int(t.clients.Load()), Orphans: int(t.orphans.Load()),
		Trimmed: int(t.trimmed.Load()), Pruned: int(t.pruned.Load()),
		Told: int(t.told.Load()), Sent: int(t.sent.Load()), Dead: int(t.dead.Load()), DryRun: dryRun,
	}
}
