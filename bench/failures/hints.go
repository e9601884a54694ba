package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"switchboard/bench/swarm"
	"switchboard/bench/system"
	"switchboard/internal/await"
	"switchboard/internal/testbed"
)

const (
	dropTime   = 10 * time.Second // for which all hints are dropped
	hintPushes = 20               // a second: few, so that the commands are those of comparisons
)

// hintsResult is what happens while all hints from one broker to the broker with the clients are
// dropped.
type hintsResult struct {
	Clients   int     `json:"clients"`
	Pushes    int     `json:"pushes"`     // during the drop
	LateP50   float64 `json:"late_p50"`   // ms from a push to its delivery, during the drop
	LateMost  float64 `json:"late_most"`  // ms, of the latest message
	BeforeP50 float64 `json:"before_p50"` // ms, without a drop
	PerClient float64 `json:"per_client"` // commands a second and client, without those of the pushes
}

// hints drops the hints of one broker for some seconds, in a proxy of the broker with n clients.
func (o options) hints(ctx context.Context, program, dir string, n int) (r hintsResult, err error) {
	redis, stats, end, err := launchRedis(dir)
	if err != nil {
		return r, err
	}
	defer end()
	link, err := testbed.NewLink("hints", "")
	if err != nil {
		return r, err
	}
	defer link.Cut()
	proxied := &system.Switchboard{Program: program, Env: []string{"SWITCHBOARD_ADVERTISE=" + link.Addr()}}
	holder, err := startBroker(ctx, proxied, dir, redis.URL(), n)
	if err != nil {
		return r, err
	}
	defer kill(holder)
	if err := link.Forward(holder.(system.Monitored).HTTP()); err != nil {
		return r, err
	}
	other, err := startBroker(ctx, &system.Switchboard{Program: program}, dir, redis.URL(), n)
	if err != nil {
		return r, err
	}
	defer kill(other)
	delays := newDelays()
	clients, err := connectClients(ctx, holder.Addr(), n, false, delays.read)
	if err != nil {
		return r, err
	}
	defer clients.close()
	if err := await.Pause(ctx, o.scaled(settleTime)); err != nil {
		return r, err
	}
	c := hintsCase{o, stats, other, delays, n}
	before, commands, err := c.window(ctx)
	if err != nil {
		return r, err
	}
	if err := link.Blackhole(); err != nil {
		return r, err
	}
	late, dropped, err := c.window(ctx)
	if err := errors.Join(err, link.Restore(ctx), clients.check()); err != nil {
		return r, err
	}
	return hintsResult{
		Clients: n, Pushes: len(late), LateP50: quantile(late, 0.5), LateMost: quantile(late, 1), BeforeP50: quantile(before, 0.5),
		PerClient: float64(dropped-commands) / float64(n) / o.scaled(dropTime).Seconds(),
	}, nil
}

// hintsCase pushes to another broker than that of the clients.
type hintsCase struct {
	options
	stats  *redisStats
	other  system.Running
	delays *delays
	n      int
}

// window pushes for some time, and returns the delays of the messages in ms and the number of
// commands. It fails if a message does not arrive.
func (c hintsCase) window(ctx context.Context) (late []float64, commands int64, err error) {
	publisher, err := c.other.Publisher()
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, publisher.Close()) }()
	pushes := max(1, int(c.scaled(dropTime).Seconds()*hintPushes))
	commands, err = c.stats.during(ctx, func() error {
		begun := time.Now()
		for i := range pushes {
			if err := await.Pause(ctx, time.Until(begun.Add(time.Duration(i)*time.Second/hintPushes))); err != nil {
				return err
			}
			channel := channelName(i * max(1, c.n/pushes) % c.n)
			if err := publisher.Publish(ctx, channel, swarm.AppendPayload(nil, int64(i+1), swarm.Now())); err != nil {
				return err
			}
		}
		return await.Pause(ctx, time.Until(begun.Add(c.scaled(dropTime))))
	})
	if err != nil {
		return nil, 0, err
	}
	for deadline := time.Now().Add(dropTime); ; { // the last messages are still to come
		if late = append(late, c.delays.take()...); len(late) >= pushes {
			return late, commands, nil
		}
		if time.Now().After(deadline) {
			return nil, 0, fmt.Errorf("%d of %d messages have arrived", len(late), pushes)
		}
		if err := await.Pause(ctx, 10*time.Millisecond); err != nil {
			return nil, 0, err
		}
	}
}

// delays collects the delays of messages.
type delays struct{ found chan float64 }

func newDelays() *delays { return &delays{make(chan float64, 1<<16)} }

// read reads messages until the connection ends.
func (d *delays) read(conn net.Conn) {
	eachPayload(conn, func(_, at int64) { d.found <- float64(swarm.Now()-at) / 1e6 })
}

// take returns the delays since the last call, in ms.
func (d *delays) take() (list []float64) {
	for {
		select {
		case late := <-d.found:
			list = append(list, late)
		default:
			return list
		}
	}
}

// quantile returns a quantile of the values; 1 is the largest.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
