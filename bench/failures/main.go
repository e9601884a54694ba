// Command failures counts the commands that Redis executes after a broker is killed, starts or
// ends, while thousands of idle clients are connected to another broker. Commands inside scripts
// count.
//
//	go run ./bench/failures --out bench/failures      writes REPORT.md and report.json
//	go run ./bench/failures --clients 1000            prints a quicker run
//	go run ./bench/failures --only idle               counts only what idle brokers cost
//
// Each case has a Redis, and a broker that holds all clients. Each client is a user and subscribes
// to a channel of its own. In the variant "watching", the channel has a state, and the client
// watches the state, the roster of the channel and another user. Another broker starts, ends after
// SIGTERM and is killed, without clients. It is then killed once more, after it has stored half of
// 2,000 pushes a second. In the last step Redis is stopped for 5 s.
//
// In the next cases a master fails over, under Sentinel and in a Cluster of three masters, with the
// same clients and one broker. The last cases are many idle brokers, in this process and without
// links; without the kit, and with all of it.
//
// No janitor runs: its rounds cost the same whether or not a broker ends.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"switchboard/bench/progress"
	"switchboard/bench/system"
)

func main() { os.Exit(command(os.Args[1:], os.Stdout, os.Stderr)) }

// The kinds of cases.
const (
	onlyEnds     = "ends"     // a broker starts and ends
	onlyFailover = "failover" // a master of a Cluster fails over
	onlyIdle     = "idle"     // idle brokers
)

// options are the flags.
type options struct {
	clients []int         // a case for each number and variant
	brokers []int         // numbers of idle brokers
	pushes  int           // a second, in the step with pushes
	only    string        // one of the constants; "" for all cases
	out     string        // directory
	time    time.Duration // of the whole run
	pace    float64       // factor for the windows
}

func parseOptions(args []string, stderr io.Writer) (o options, err error) {
	f := pflag.NewFlagSet("failures", pflag.ContinueOnError)
	f.SetOutput(stderr)
	f.SortFlags = false
	f.IntSliceVarP(&o.clients, "clients", "n", []int{1000, 4000}, "numbers of clients, one case each")
	f.IntSliceVar(&o.brokers, "brokers", []int{100, 200}, "numbers of idle brokers")
	f.IntVar(&o.pushes, "pushes", 2000, "pushes a second before and after the last kill; half of them by the killed broker")
	f.StringVar(&o.out, "out", "", "also write REPORT.md and report.json into this directory")
	f.DurationVar(&o.time, "time", 30*time.Minute, "time limit of the run")
	f.Float64Var(&o.pace, "pace", 1, "factor for all waits; figures count only with 1")
	f.StringVar(&o.only, "only", "", "only the cases of one kind: ends, failover or idle")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if !slices.Contains([]string{"", onlyEnds, onlyFailover, onlyIdle}, o.only) {
		return o, fmt.Errorf("--only %s is unknown", o.only)
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
	if o.only != onlyIdle {
		p.Stage("building the broker")
		if program, err = system.BuildBroker(ctx, dir); err != nil {
			return err
		}
	}
	r := report{Date: time.Now().UTC().Format(time.DateOnly)}
	if err := o.cases(ctx, p, program, dir, &r); err != nil {
		return err
	}
	p.Clear()
	text := r.markdown()
	if o.out != "" {
		data, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return err
		}
		if err := errors.Join(
			os.WriteFile(filepath.Join(o.out, "REPORT.md"), text, 0o644),
			os.WriteFile(filepath.Join(o.out, "report.json"), append(data, '\n'), 0o644),
		); err != nil {
			return err
		}
	}
	_, err = stdout.Write(text)
	return err
}

// cases measures the cases and adds their results to r.
func (o options) cases(ctx context.Context, p *progress.Line, program, dir string, r *report) error {
	has := func(kind string) bool { return o.only == "" || o.only == kind }
	for _, watching := range []bool{false, true} {
		for _, n := range o.clients {
			if !has(onlyEnds) {
				break
			}
			c := &testCase{options: o, progress: p, program: program, dir: dir, result: result{Clients: n, Watching: watching}}
			if err := c.run(ctx); err != nil {
				return fmt.Errorf("%d clients, watching %v: %w", n, watching, err)
			}
			r.Results = append(r.Results, c.result)
		}
	}
	for _, n := range o.clients {
		if !has(onlyFailover) {
			break
		}
		for _, store := range []string{storeCluster, storeSentinel} {
			p.Stage("%d clients: the failover of a master, %s", n, store)
			f, err := o.failover(ctx, program, dir, store, n)
			if err != nil {
				return fmt.Errorf("%d clients, failover, %s: %w", n, store, err)
			}
			r.Failovers = append(r.Failovers, f)
		}
	}
	for _, kit := range []bool{false, true} {
		for _, n := range o.brokers {
			if !has(onlyIdle) {
				break
			}
			p.Stage("%d idle brokers, kit %v", n, kit)
			idle, err := o.idle(ctx, dir, n, kit)
			if err != nil {
				return fmt.Errorf("%d idle brokers, kit %v: %w", n, kit, err)
			}
			r.Idle = append(r.Idle, idle)
		}
	}
	return nil
}
