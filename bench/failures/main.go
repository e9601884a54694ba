package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"switchboard/bench/progress"
	"switchboard/bench/system"
)

func main() { os.Exit(command(os.Args[1:], os.Stdout, os.Stderr)) }

// The kinds of cases, see the comment of the command.
const (
	onlyEnds       = "ends"
	onlyFailover   = "failover"
	onlyRestarts   = "restarts"
	onlyHints      = "hints"
	onlyPushes     = "pushes"
	onlyIdle       = "idle"
	onlyCentrifuge = "centrifuge"
)

var kinds = []string{onlyEnds, onlyFailover, onlyRestarts, onlyHints, onlyPushes, onlyIdle, onlyCentrifuge}

// options are the flags.
type options struct {
	clients      []int         // a case for each number and variant
	brokers      []int         // numbers of idle brokers
	pushes       int           // a second, in the step with pushes
	fleetBrokers int           // in this process
	fleetClients int           // of all of these brokers
	restartCount int           // of brokers of the fleet
	only         []string      // kinds of cases; none for all
	out          string        // directory
	time         time.Duration // of the whole run
	pace         float64       // factor for the windows
}

func parseOptions(args []string, stderr io.Writer) (o options, err error) {
	f := pflag.NewFlagSet("failures", pflag.ContinueOnError)
	f.SetOutput(stderr)
	f.SortFlags = false
	f.IntSliceVarP(&o.clients, "clients", "n", []int{1000, 4000}, "numbers of clients, one case each")
	f.IntSliceVar(&o.brokers, "brokers", []int{100, 200}, "numbers of idle brokers")
	f.IntVar(&o.pushes, "pushes", 2000, "pushes a second before and after the last kill; half of them by the killed broker")
	f.IntVar(&o.fleetBrokers, "fleet", 200, "number of brokers in this process, some of which restart")
	f.IntVar(&o.fleetClients, "fleet-clients", 50_000, "number of clients of all these brokers")
	f.IntVar(&o.restartCount, "restarts", 12, "how many of these brokers restart")
	f.StringVar(&o.out, "out", "", "also write REPORT.md, report.json and plots into this directory; results of other cases stay")
	f.DurationVar(&o.time, "time", time.Hour, "time limit of the run")
	f.Float64Var(&o.pace, "pace", 1, "factor for all waits; figures count only with 1")
	f.StringSliceVar(&o.only, "only", nil, "only the cases of these kinds: "+strings.Join(kinds, ", "))
	if err := f.Parse(args); err != nil {
		return o, err
	}
	for _, kind := range o.only {
		if !slices.Contains(kinds, kind) {
			return o, fmt.Errorf("--only %s is unknown", kind)
		}
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	for _, n := range o.clients {
		if n < 2 {
			return o, errors.New("--clients must be above 1")
		}
	}
	for _, n := range o.brokers {
		if n < 1 {
			return o, errors.New("--brokers must be positive")
		}
	}
	if o.fleetBrokers < 1 || o.fleetClients < o.fleetBrokers || o.restartCount < 1 {
		return o, errors.New("--fleet and --restarts must be positive, and each broker of the fleet needs a client")
	}
	return o, nil
}

func command(args []string, stdout io.Writer, stderr *os.File) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := parseOptions(args, stderr)
	if errors.Is(err, pflag.ErrHelp) {
		return 0
	}
	if err == nil {
		err = o.run(ctx, progress.New(stderr), stdout)
	}
	if err != nil {
		fmt.Fprintf(stderr, "failures: %v\n", err)
		return 1
	}
	return 0
}

// scaled returns a time with the factor of the run.
func (o options) scaled(d time.Duration) time.Duration { return time.Duration(float64(d) * o.pace) }

// run measures all cases, prints the table and writes the files.
func (o options) run(ctx context.Context, p *progress.Line, stdout io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, o.time)
	defer cancel()
	dir, err := os.MkdirTemp("", "failures-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program := ""
	if slices.ContainsFunc([]string{onlyEnds, onlyFailover, onlyHints, onlyPushes}, o.has) {
		p.Stage("building the broker")
		if program, err = system.BuildBroker(ctx, dir); err != nil {
			return err
		}
	}
	measured := report{Date: time.Now().UTC().Format(time.DateOnly)}
	err = o.cases(ctx, p, program, dir, &measured)
	p.Clear()
	r := measured
	if o.out != "" { // also after an error, with the results so far
		// Read at the end: another run may have added results meanwhile.
		earlier, readErr := readReport(o.out)
		if readErr != nil {
			return errors.Join(err, readErr)
		}
		r = earlier.with(measured)
		err = errors.Join(err, r.write(o.out))
	}
	_, printErr := stdout.Write(r.markdown())
	return errors.Join(err, printErr)
}

// has reports whether the run has cases of a kind.
func (o options) has(kind string) bool { return len(o.only) == 0 || slices.Contains(o.only, kind) }

// cases measures the cases and adds their results to r.
func (o options) cases(ctx context.Context, p *progress.Line, program, dir string, r *report) error {
	for _, c := range []struct {
		kind    string
		measure func() error
	}{
		{onlyEnds, func() error { return o.endCases(ctx, p, program, dir, r) }},
		{onlyFailover, func() error { return o.failoverCases(ctx, p, program, dir, r) }},
		{onlyRestarts, func() error {
			one, err := o.restarts(ctx, p, dir)
			if err == nil {
				r.Restarts = &one
			}
			return err
		}},
		{onlyHints, func() error { return o.hintCases(ctx, p, program, dir, r) }},
		{onlyPushes, func() (err error) {
			r.Pushes, err = o.pushCases(ctx, p, program, dir)
			return err
		}},
		{onlyIdle, func() error { return o.idleCases(ctx, p, dir, r) }},
		{onlyCentrifuge, func() error { return o.centrifugeCases(ctx, p, dir, r) }},
	} {
		if !o.has(c.kind) {
			continue
		}
		if err := c.measure(); err != nil {
			return fmt.Errorf("%s: %w", c.kind, err)
		}
	}
	return nil
}

func (o options) endCases(ctx context.Context, p *progress.Line, program, dir string, r *report) error {
	for _, watching := range []bool{false, true} {
		for _, n := range o.clients {
			c := &testCase{options: o, progress: p, program: program, dir: dir, result: result{Clients: n, Watching: watching}}
			if err := c.run(ctx); err != nil {
				return fmt.Errorf("%d clients, watching %v: %w", n, watching, err)
			}
			r.Results = append(r.Results, c.result)
		}
	}
	return nil
}

func (o options) failoverCases(ctx context.Context, p *progress.Line, program, dir string, r *report) error {
	for _, n := range o.clients {
		for _, store := range []string{storeCluster, storeOwn, storeTwice, storeSentinel} {
			p.Stage("%d clients: the failover of a master, %s", n, store)
			f, err := o.failover(ctx, program, dir, store, n)
			if err != nil {
				return fmt.Errorf("%d clients, %s: %w", n, store, err)
			}
			r.Failovers = append(r.Failovers, f)
		}
	}
	return nil
}

func (o options) hintCases(ctx context.Context, p *progress.Line, program, dir string, r *report) error {
	for _, n := range o.clients {
		p.Stage("%d clients: all hints are dropped", n)
		h, err := o.hints(ctx, program, dir, n)
		if err != nil {
			return fmt.Errorf("%d clients: %w", n, err)
		}
		r.Hints = append(r.Hints, h)
	}
	return nil
}

func (o options) idleCases(ctx context.Context, p *progress.Line, dir string, r *report) error {
	for _, kit := range []bool{false, true} {
		for _, n := range o.brokers {
			p.Stage("%d idle brokers, kit %v", n, kit)
			idle, err := o.idle(ctx, dir, n, kit)
			if err != nil {
				return fmt.Errorf("%d brokers, kit %v: %w", n, kit, err)
			}
			r.Idle = append(r.Idle, idle)
		}
	}
	return nil
}

func (o options) centrifugeCases(ctx context.Context, p *progress.Line, dir string, r *report) error {
	for _, n := range o.clients {
		one, err := o.peerCase(ctx, p, dir, n)
		if err != nil {
			return fmt.Errorf("%d clients: %w", n, err)
		}
		r.Centrifuge = append(r.Centrifuge, one)
	}
	for _, n := range o.brokers {
		p.Stage("%d idle nodes of centrifuge", n)
		idle, err := o.idlePeer(ctx, dir, n)
		if err != nil {
			return fmt.Errorf("%d idle nodes: %w", n, err)
		}
		r.Idle = append(r.Idle, idle)
	}
	return nil
}
