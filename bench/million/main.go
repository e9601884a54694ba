// Command million connects a million subscribers to as many brokers as the descriptor limit needs, all on this
// machine, pushes to all of them, and prints what that took as Markdown.
//
//	go run ./bench/million                         1,000,000 connections; 20 GiB of memory, some ten minutes
//	go run ./bench/million --connections 100000
//
// The brokers share one Redis. Each has one process of subscribers, which checks that every connection gets every
// message once and in order. Signs of life are set to an hour, so that what is measured is the push.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"switchboard/bench/progress"
)

// subscribersCommand, as the first argument, makes this program one process of subscribers.
const subscribersCommand = "subscribers"

func main() { os.Exit(command(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// options are the flags.
type options struct {
	connections, perBroker, pushes int
	transport, out                 string
	time                           time.Duration
}

// brokers is how many that needs.
func (o options) brokers() int { return (o.connections + o.perBroker - 1) / o.perBroker }

func parseOptions(args []string, stderr io.Writer) (o options, err error) {
	f := pflag.NewFlagSet("million", pflag.ContinueOnError)
	f.SetOutput(stderr)
	f.SortFlags = false
	f.IntVarP(&o.connections, "connections", "n", 1_000_000, "subscribers in all, each a connection with a client id of its own")
	f.IntVar(&o.perBroker, "per-broker", mostPerProcess(), "subscribers of one broker, and of one process of them")
	f.IntVar(&o.pushes, "pushes", 5, "pushes that reach all, one at a time")
	f.StringVar(&o.out, "out", "", "also write what is printed into this file")
	f.DurationVar(&o.time, "time", 8*time.Minute, "the run ends after so long")
	f.StringVar(&o.transport, "transport", "tcp", "tcp or ws")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("%q belongs to no flag", f.Arg(0))
	case o.connections < 1 || o.perBroker < 1 || o.pushes < 1:
		return o, errors.New("--connections, --per-broker and --pushes are above 0")
	case o.transport != "tcp" && o.transport != "ws":
		return o, fmt.Errorf("--transport: %q is neither tcp nor ws", o.transport)
	}
	return o, nil
}

// spare is how many descriptors a broker does not give to clients: those for Redis, files, links, the API.
const spare = 1_500

// mostPerProcess is what the descriptor limit allows.
func mostPerProcess() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 10_000
	}
	return max(1, int(min(limit.Cur, 1<<20))-spare)
}

// command is the program: 0 when everybody received everything.
func command(args []string, stdin io.Reader, stdout io.Writer, stderr *os.File) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if len(args) > 0 && args[0] == subscribersCommand {
		err = subscribers(ctx, args[1:], stdin, stdout)
	} else {
		var o options
		o, err = parseOptions(args, stderr)
		if errors.Is(err, pflag.ErrHelp) {
			return 0
		}
		if err == nil {
			err = o.run(ctx, progress.New(stderr), stdout)
		}
	}
	if err != nil {
		fmt.Fprintf(stderr, "million: %v\n", err)
		return 1
	}
	return 0
}

// run measures, prints, and writes the file.
func (o options) run(ctx context.Context, p *progress.Line, stdout io.Writer) error {
	var text bytes.Buffer
	if err := measure(ctx, o, p, &text); err != nil {
		return err
	}
	if o.out != "" {
		if err := os.WriteFile(o.out, text.Bytes(), 0o644); err != nil {
			return err
		}
	}
	_, err := stdout.Write(text.Bytes())
	return err
}
