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

// channel is the one that all follow.
const channel = "million"

// restTime is how long a process looks at its connections before it looks for a command again.
const restTime = 20 * time.Millisecond

// subscribers is one process of them. It connects and prints "ready"; for each line of in it waits until
// everybody has one message more, and prints "received"; at the end of in it checks them all.
func subscribers(ctx context.Context, args []string, in io.Reader, out io.Writer) (err error) {
	if len(args) != 4 {
		return errors.New("subscribers take address, transport, connections and the beginning of their client ids")
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
		Addr: args[0], Dialect: dialect, Connections: connections, Channels: []string{channel}, Client: args[3], Stall: stallTime,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Open(ctx, func() {}); err != nil {
		return err
	}
	fmt.Fprintln(out, "ready")
	orders := make(chan struct{})
	go func() {
		defer close(orders)
		for lines := bufio.NewScanner(in); lines.Scan(); {
			orders <- struct{}{}
		}
	}()
	return serve(ctx, s, orders, int64(connections), out)
}

// serve receives what is ordered.
func serve(ctx context.Context, s *swarm.Swarm, orders <-chan struct{}, connections int64, out io.Writer) error {
	var pushed []int64
	for {
		select {
		case _, more := <-orders:
			if !more {
				if err := s.Idle(ctx, strayTime); err != nil {
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
			if err := s.Idle(ctx, restTime); err != nil {
				return err
			}
		}
	}
}

// strayTime is how long a delivery too many may take to show itself in the end.
const strayTime = 300 * time.Millisecond

// stallTime is how long nothing may come: the brokers share two cores with all subscribers.
const stallTime = 2 * time.Minute
