package main

import (
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"time"

	"github.com/spf13/pflag"
)

const (
	fullBeat  = time.Second
	shortBeat = 400 * time.Millisecond
)

// options are the flags.
type options struct {
	only     *regexp.Regexp // nil for all
	short    bool
	seed     uint64
	keepLogs bool
	out      ledgerFiles
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	var only, out string
	f := pflag.NewFlagSet("faults", pflag.ContinueOnError)
	f.SetOutput(stderr)
	f.SortFlags = false
	f.StringVar(&only, "only", "", "regular expression: run the scenarios with matching names; the series of kills is named \"presence after kill -9\"")
	f.BoolVar(&o.short, "short", false, "fewer clients and shorter beats")
	f.Uint64Var(&o.seed, "seed", 1, "seed of all random choices")
	f.BoolVar(&o.keepLogs, "keep-logs", false, "keep the logs of the processes of all rows, not only of red rows")
	f.StringVar(&out, "out", "", "directory for faults.md and ledger.json; without it a whole run writes docs/faults.md and internal/faults/ledger.json, and a partial run writes neither")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if only != "" {
		var err error
		if o.only, err = regexp.Compile(only); err != nil {
			return o, fmt.Errorf("--only: %w", err)
		}
	}
	switch {
	case out != "":
		o.out = ledgerFiles{page: filepath.Join(out, "faults.md"), record: filepath.Join(out, "ledger.json")}
	case o.only == nil && !o.short:
		o.out = published
	}
	return o, nil
}

// kills returns the series of kills, and whether to run it.
func (o options) kills() (killPlan, bool) {
	plan := fullSeries
	if o.short {
		plan = shortSeries
	}
	return plan, o.only == nil || o.only.MatchString(killsName)
}

// runner returns a runner with the size and the beat of the run.
func (o options) runner() runner {
	r := runner{seed: o.seed, keepLogs: o.keepLogs, scale: fullScale, times: times{fullBeat}}
	if o.short {
		r.scale, r.times = shortScale, times{shortBeat}
	}
	return r
}

// scenarios returns the scenarios to run.
func (o options) scenarios() (chosen []scenario) {
	for _, sc := range scenarios {
		if o.only == nil || o.only.MatchString(sc.name) {
			chosen = append(chosen, sc)
		}
	}
	return chosen
}

// times holds the beat of a run: the interval at which a broker renews its lease. The other
// intervals follow from it.
type times struct{ Beat time.Duration }

func (t times) lease() time.Duration           { return 5 * t.Beat }
func (t times) janitorInterval() time.Duration { return t.Beat * 3 / 2 } // between two rounds of the janitor over the servers
func (t times) drainTime() time.Duration       { return t.Beat }         // within which a stopping broker disconnects its clients

// cleanupBound is the longest time until nothing remains of a dead server or a departed client: the
// lease, two rounds of the janitor with a second each for its probe, and 2 s of slack.
func (t times) cleanupBound() time.Duration {
	return t.lease() + 2*(t.janitorInterval()+t.janitorInterval()/10+time.Second) + 2*time.Second
}
