package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"switchboard/bench/swarm"
)

// channel is the channel of all subscribers.
const channel = "million"

// commandPoll is how long a process serves its connections before it checks for a command.
const commandPoll = 20 * time.Millisecond

// runSubscribers runs a subscriber process. It connects and prints "ready". For each line of stdin
// it prints "waiting", waits until each connection has received one more message, and prints
// "received". At the end of stdin it checks all messages.
func runSubscribers(ctx context.Context, args []string, stdin io.Reader, out io.Writer) (err error) {
	if len(args) != 4 {
		return errors.New("subscribers need address, transport, connections and client id prefix")
	}
	connections, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	dialect := &swarm.Switchboard{Addr: args[0]}
	if args[1] == "ws" {
		dialect.Path = "/ws"
	}
	s, err := swarm.New(swarm.Options{
		Addr: args[0], Dialect: dialect, Connections: connections, Channels: []string{channel}, Client: args[3], Stall: stallTimeout,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Open(ctx, func() {}); err != nil {
		return err
	}
	fmt.Fprintln(out, "ready")
	commands := make(chan struct{})
	go func() {
		defer close(commands)
		for lines := bufio.NewScanner(stdin); lines.Scan(); {
			commands <- struct{}{}
		}
	}()
	return serveCommands(ctx, s, commands, int64(connections), out)
}

// serveCommands waits for one message after each command, and checks all messages when commands is
// closed.
func serveCommands(ctx context.Context, s *swarm.Swarm, commands <-chan struct{}, connections int64, out io.Writer) error {
	var pushed []int64
	for {
		select {
		case _, ok := <-commands:
			if !ok {
				if err := s.Idle(ctx, strayWait); err != nil {
					return err
				}
				if wrong, faults := s.Verify([][]int64{pushed}); wrong > 0 {
					return fmt.Errorf("%d deliveries were lost, repeated, changed or out of order: %s", wrong, faults[0])
				}
				return nil
			}
			pushed = append(pushed, int64(len(pushed)+1))
			fmt.Fprintln(out, "waiting")
			want := int64(len(pushed)) * connections
			if err := s.Until(ctx, "receive", func() bool { n, _ := s.Received(); return n >= want }); err != nil {
				return err
			}
			fmt.Fprintln(out, "received")
		default:
			if err := s.Idle(ctx, commandPoll); err != nil {
				return err
			}
		}
	}
}

// strayWait is how long to wait at the end for unexpected deliveries.
const strayWait = 300 * time.Millisecond

// stallTimeout is the time without a message after which the run fails. It is long because the
// brokers share two cores with all subscribers.
const stallTimeout = 2 * time.Minute
