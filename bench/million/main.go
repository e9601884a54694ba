// Command million connects a million subscribers to brokers on this machine, pushes messages to all
// of them, and prints the cost as Markdown. It starts as many brokers as the descriptor limit
// requires.
//
//	go run ./bench/million               1,000,000 connections; needs 16 GiB, some five minutes
//	go run ./bench/million --connections 100000
//
// The brokers share one Redis. Each broker has one subscriber process, which checks that every
// connection receives every message once and in order. The ping interval is one hour, so that only
// the pushes are measured.
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

// subscribersCommand as the first argument makes this program a subscriber process.
const subscribersCommand = "subscribers"

func main() { os.Exit(command(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// options are the flags.
type options struct {
	connections, perBroker, pushes int
	transport, out                 string
	time                           time.Duration
}

// brokers returns the number of brokers.
func (o options) brokers() int { return (o.connections + o.perBroker - 1) / o.perBroker }

func parseOptions(args []string, stderr io.Writer) (o options, err error) {
	f := pflag.NewFlagSet("million", pflag.ContinueOnError)
	f.SetOutput(stderr)
	f.SortFlags = false
	f.IntVarP(&o.connections, "connections", "n", 1_000_000, "number of subscribers, each with its own connection and client id")
	f.IntVar(&o.perBroker, "per-broker", maxPerProcess(), "subscribers per broker; one process holds all subscribers of a broker")
	f.IntVar(&o.pushes, "pushes", 5, "pushes to all subscribers, one at a time")
	f.StringVar(&o.out, "out", "", "also write the output to this file")
	f.DurationVar(&o.time, "time", 8*time.Minute, "time limit of the run")
	f.StringVar(&o.transport, "transport", "tcp", "tcp or ws")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	case o.connections < 1 || o.perBroker < 1 || o.pushes < 1:
		return o, errors.New("--connections, --per-broker and --pushes must be above 0")
	case o.transport != "tcp" && o.transport != "ws":
		return o, fmt.Errorf("--transport: %q is neither tcp nor ws", o.transport)
	}
	return o, nil
}

// spareDescriptors is the number of file descriptors that a broker needs besides those of clients:
// for Redis, files, links and the API.
const spareDescriptors = 1_500

// maxPerProcess returns how many subscribers the descriptor limit allows.
func maxPerProcess() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 10_000
	}
	return max(1, int(min(limit.Cur, 1<<20))-spareDescriptors)
}

// command runs the program. It returns 0 if every connection received every message.
func command(args []string, stdin io.Reader, stdout io.Writer, stderr *os.File) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if len(args) > 0 && args[0] == subscribersCommand {
		err = runSubscribers(ctx, args[1:], stdin, stdout)
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

// run measures, prints the result and writes the file.
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
