package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"switchboard/bench/progress"
	"switchboard/bench/system"
)

func main() { os.Exit(command(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// command runs the program. It returns 0 for a valid run, 1 for an invalid one, and 2 for wrong
// arguments.
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
		fmt.Fprintf(stderr, "bench: %v\n", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	p := progress.New(stderr)
	res, err := measure(ctx, o, p)
	p.Clear()
	if err != nil {
		res.Valid, res.Error = false, err.Error()
	}
	if o.json {
		out := json.NewEncoder(stdout)
		out.SetIndent("", "  ")
		err = out.Encode(res)
	} else {
		res.printTable(stdout)
		err = nil
	}
	if err != nil || !res.Valid {
		return 1
	}
	return 0
}
