package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"
)

func main() { os.Exit(command(os.Args[1:], os.Stdout, os.Stderr)) }

// command runs the program and returns its exit code: 0 if all rows are ok, 1 if one is red or the
// run failed, 2 if the arguments are invalid.
func command(args []string, stdout, stderr io.Writer) int {
	o, err := parseOptions(args, stderr)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "faults: %v\n", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "faults: %v\n", err)
		return 1
	}
	return 0
}

var errRed = errors.New("there are red rows")

// run runs the chosen scenarios and writes the ledger, whether or not rows are red.
func run(ctx context.Context, o options, stdout, stderr io.Writer) error {
	chosen := o.scenarios()
	plan, kills := o.kills()
	if len(chosen) == 0 && !kills {
		return errors.New("--only matches no scenario")
	}
	dir, err := os.MkdirTemp("", "switchboard-faults-")
	if err != nil {
		return err
	}
	r := o.runner()
	r.dir, r.logf = dir, func(format string, args ...any) { fmt.Fprintf(stderr, format+"\n", args...) }
	if r.programs, err = build(ctx, dir, chosen); err != nil {
		return err
	}
	l := newLedger(r)
	began := time.Now()
	for _, sc := range chosen {
		if ctx.Err() != nil {
			break
		}
		l.Rows = append(l.Rows, r.run(ctx, sc))
	}
	if kills && ctx.Err() == nil {
		l.Kills = r.runKills(ctx, plan)
	}
	l.Seconds = time.Since(began).Round(time.Second).Seconds()
	fmt.Fprint(stdout, l.table())
	if o.out != (ledgerFiles{}) {
		err = l.write(o.out)
	}
	kept := o.keepLogs
	for _, row := range l.Rows {
		if len(row.Red) > 0 {
			fmt.Fprintf(stdout, "\n%s  logs: %s\n", row.explain(), row.Logs)
			kept, err = true, errors.Join(err, errRed)
		}
	}
	if l.Kills != nil {
		fmt.Fprint(stdout, l.Kills.markdown())
		if len(l.Kills.Red) > 0 {
			fmt.Fprintf(stdout, "\nlogs: %s\n", l.Kills.logs)
			kept, err = true, errors.Join(err, errRed)
		}
	}
	if !kept {
		_ = removeDir(dir)
	}
	return errors.Join(err, ctx.Err())
}
