package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"switchboard/bench/progress"
	"switchboard/bench/report"
	"switchboard/bench/system"
)

func main() { os.Exit(command(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// sparePlaces makes room in the Go runtime beside the threads that wait in the kernel: the subscribers' and the one that
// sets the pace. With as many places as processors the runtime took theirs from them and gave them back 20,000 times a
// second, a quarter of a processor. With twice as many a push of the open loop began 0.11 ms after its moment and not 0.16
// (nine times in ten within 0.2 ms, not 0.6): medians over four systems and three rounds.
func sparePlaces() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(2 * runtime.NumCPU())
	}
}

// options are the flags.
type options struct {
	quick, json bool
	only        *regexp.Regexp
	rounds      int
	out         string
}

func parseOptions(args []string, stderr io.Writer) (o options, err error) {
	f := pflag.NewFlagSet("suite", pflag.ContinueOnError)
	f.SetOutput(stderr)
	f.SortFlags = false
	only := ""
	f.BoolVar(&o.quick, "quick", false, "smaller and fewer, under five minutes; the table is printed, and nothing written unless --out says where")
	f.StringVar(&only, "only", "", "regular expression: the scenarios whose ids it matches")
	f.IntVar(&o.rounds, "rounds", 0, "how often each is measured; zero means 4, and 2 with --quick")
	f.StringVar(&o.out, "out", "", "folder of the report; zero means bench")
	f.BoolVar(&o.json, "json", false, "print the figures as JSON, and write no report")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("%q belongs to no flag", f.Arg(0))
	}
	if only != "" {
		if o.only, err = regexp.Compile(only); err != nil {
			return o, fmt.Errorf("--only: %w", err)
		}
	}
	if len(chosen(o.only)) == 0 {
		return o, fmt.Errorf("--only: %s matches no scenario", only)
	}
	if o.rounds < 0 {
		return o, fmt.Errorf("--rounds: %d is no number of rounds", o.rounds)
	}
	if o.rounds == 0 {
		o.rounds = map[bool]int{false: 4, true: 2}[o.quick]
	}
	if !o.quick {
		o.out = cmp.Or(o.out, "bench")
	}
	return o, nil
}

// command is the program: 0 when all measurements of ours counted, 1 when one did not, 2 for arguments that are wrong.
func command(args []string, stdin io.Reader, stdout io.Writer, stderr *os.File) int {
	if len(args) > 0 && args[0] == floorCommand {
		if err := system.FloorWriter(args[1:], stdin, stdout); err != nil {
			fmt.Fprintln(stderr, err)
			return 1
		}
		return 0
	}
	o, err := parseOptions(args, stderr)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "suite: %v\n", err)
		return 2
	}
	sparePlaces()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := runSuite(ctx, o, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "suite: %v\n", err)
		return 1
	}
	return 0
}

func runSuite(ctx context.Context, o options, stdout io.Writer, stderr *os.File) (err error) {
	dir, err := os.MkdirTemp("", "suite-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s := &suite{scenarios: chosen(o.only), rounds: o.rounds, quick: o.quick, progress: progress.New(stderr)}
	if err := s.build(ctx, dir); err != nil {
		return err
	}
	err = s.run(ctx)
	s.progress.Clear()
	if err != nil {
		return err
	}
	r := s.report()
	return errors.Join(o.tell(r, stdout), ours(r.Invalid))
}

// ours is an error when a measurement of this project's own did not count. Those of others are told in the report.
func ours(invalid []string) error {
	var errs []error
	for _, text := range invalid {
		if strings.Contains(text, "switchboard") || strings.Contains(text, "floor") {
			errs = append(errs, fmt.Errorf("this did not count: %s", text))
		}
	}
	return errors.Join(errs...)
}

// tell prints what was found, and writes the report where one is wanted.
func (o options) tell(r report.Run, stdout io.Writer) error {
	if o.json {
		out := json.NewEncoder(stdout)
		out.SetIndent("", " ")
		return out.Encode(r)
	}
	report.Table(stdout, r)
	if o.out == "" {
		return nil
	}
	return report.Write(o.out, r)
}
