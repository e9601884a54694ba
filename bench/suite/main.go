package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"switchboard/bench/progress"
	"switchboard/bench/report"
	"switchboard/bench/system"
)

func main() { os.Exit(command(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// raiseGOMAXPROCS doubles GOMAXPROCS, because two threads block in system calls: the swarm's and
// the one of sendDueTimes. The Go runtime hands the P of a blocked thread to another thread, and
// the thread must then get one back. With one P per processor this happened 20,000 times a second
// and cost a quarter of a processor. With two, a push of the open loop began 0.11 ms after it was
// due instead of 0.16 ms (90th percentile: 0.2 ms instead of 0.6 ms). These are medians over four
// systems and three rounds.
func raiseGOMAXPROCS() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(2 * runtime.NumCPU())
	}
}

// command runs the program. It returns 0 if all measurements of our own systems counted, 1 if one
// did not, and 2 for wrong arguments.
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
	raiseGOMAXPROCS()
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
	s := o.suite()
	s.progress = progress.New(stderr)
	if err := s.build(ctx, dir); err != nil {
		return err
	}
	err = s.run(ctx)
	s.progress.Clear()
	if err != nil {
		return err
	}
	r := s.report()
	return errors.Join(o.writeResult(r, stdout), checkOwnSystems(r.Invalid))
}

// checkOwnSystems returns an error if a measurement of our own systems did not count. Invalid
// measurements of peers are only reported.
func checkOwnSystems(invalid []string) error {
	var errs []error
	for _, text := range invalid {
		if strings.Contains(text, "switchboard") || strings.Contains(text, "floor") {
			errs = append(errs, fmt.Errorf("measurement did not count: %s", text))
		}
	}
	return errors.Join(errs...)
}

// writeResult prints the result and writes the report if there is a directory for it.
func (o options) writeResult(r report.Run, stdout io.Writer) error {
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
