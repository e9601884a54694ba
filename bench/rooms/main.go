package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"switchboard/bench/progress"
	"switchboard/bench/system"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(ctx, os.Args[1:]); err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "rooms: %v\n", err)
		os.Exit(1)
	}
}

// The members of rooms.
const (
	smallRoom = 4
	largeRoom = 50
)

// size is how much is measured.
type size struct {
	rounds      int
	warmRooms   int // of 4, before the measurement
	rooms       int // of 4
	activeRooms int // those of them whose members change something
	largeRooms  int // of 50
	emptyRooms  int
	resources   int // of holds
	maxHolds    int // on all resources
	time        time.Duration
}

var (
	full  = size{2, 10, 500, 250, 20, 1000, 1000, 9000, 3 * time.Second}
	quick = size{1, 5, 100, 50, 4, 200, 100, 3000, time.Second}
)

// figure is one measured number.
type figure struct {
	contender, metric string
	value             float64
}

// run is one run of the program.
type run struct {
	size     size
	progress *progress.Line
	broker   string // path of the program
	stage    string // round and contender
	figures  []figure
}

func (r *run) show(format string, args ...any) {
	r.progress.Stage("%s: %s", r.stage, fmt.Sprintf(format, args...))
}

func command(ctx context.Context, args []string) (err error) {
	f := pflag.NewFlagSet("rooms", pflag.ContinueOnError)
	small := f.Bool("quick", false, "one small round, in under a minute")
	out := f.String("out", "", "also write the report to this file")
	limit := f.Duration("time", 6*time.Minute, "time limit of the run")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	ctx, cancel := context.WithTimeout(ctx, *limit)
	defer cancel()
	r := &run{size: full, progress: progress.New(os.Stderr)}
	if *small {
		r.size = quick
	}
	dir, err := os.MkdirTemp("", "rooms-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r.progress.Stage("building the broker")
	if r.broker, err = system.BuildBroker(ctx, dir); err != nil {
		return err
	}
	machine := beginMachine()
	if err := r.rounds(ctx); err != nil {
		return err
	}
	r.progress.Clear()
	var text bytes.Buffer
	r.report(&text, machine)
	if *out != "" {
		if err := os.WriteFile(*out, text.Bytes(), 0o644); err != nil {
			return err
		}
	}
	_, err = os.Stdout.Write(text.Bytes())
	return err
}

// rounds measures every contender in every round, in another order each time.
func (r *run) rounds(ctx context.Context) error {
	list := contenders()
	for round := range r.size.rounds {
		for i := range list {
			c := list[(i+round*len(list)/2)%len(list)]
			r.stage = fmt.Sprintf("round %d of %d, %s", round+1, r.size.rounds, c.name)
			for _, do := range c.trials {
				if err := r.measure(ctx, c, do); err != nil {
					return fmt.Errorf("%s: %w", r.stage, err)
				}
			}
		}
	}
	return nil
}
