package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"switchboard/broker"
	"switchboard/internal/await"
	"switchboard/internal/redispipe"
)

// The times of idle brokers.
const (
	beatTime   = 2 * time.Second
	idleSettle = 8 * time.Second  // after the last start
	idleWindow = 30 * time.Second // 15 beats
)

// idleResult is the number of commands of brokers without clients.
type idleResult struct {
	System    string  `json:"system,omitempty"` // "" for this project's brokers
	Brokers   int     `json:"brokers"`
	Kit       bool    `json:"kit"`
	PerSecond float64 `json:"per_second"`
	PerBeat   float64 `json:"per_beat"` // of one broker
}

// idle counts the commands of n idle brokers in this process, without the kit or with all of it.
// They have no links, which would need more sockets than a process has, and which use no Redis.
func (o options) idle(ctx context.Context, dir string, n int, kit bool) (r idleResult, err error) {
	server, stats, end, err := launchRedis(dir)
	if err != nil {
		return r, err
	}
	defer end()
	client := redis.NewClient(&redis.Options{Addr: server.Addr, MaxRetries: -1})
	defer func() { err = errors.Join(err, client.Close()) }()

	beat := o.scaled(beatTime)
	brokersCtx, stop := context.WithCancel(ctx)
	defer stop()
	var brokers errgroup.Group
	for i := range n {
		run, err := idleBroker(client, fmt.Sprint("idle-", i), beat, kit)
		if err != nil {
			return r, err
		}
		brokers.Go(func() error { return run(brokersCtx) })
		if err := await.Pause(ctx, beat/time.Duration(n)); err != nil { // the beats are spread, as those of many machines
			return r, err
		}
	}
	r = idleResult{Brokers: n, Kit: kit}
	err = o.countIdle(ctx, stats, &r)
	stop()
	return r, errors.Join(err, brokers.Wait())
}

// countIdle counts the commands a second, after the brokers have settled.
func (o options) countIdle(ctx context.Context, stats *redisStats, r *idleResult) error {
	if err := await.Pause(ctx, o.scaled(idleSettle)); err != nil {
		return err
	}
	began := time.Now()
	n, err := stats.during(ctx, func() error { return await.Pause(ctx, o.scaled(idleWindow)) })
	r.PerSecond = float64(n) / time.Since(began).Seconds()
	r.PerBeat = r.PerSecond * o.scaled(beatTime).Seconds() / float64(r.Brokers)
	return err
}

// idleBroker returns a function that runs a broker on the shared Redis, with a pipe of its own.
func idleBroker(client *redis.Client, name string, beat time.Duration, kit bool) (run func(context.Context) error, err error) {
	pipe := redispipe.New(client, redispipe.Options{})
	o := brokerOptions(name, pipe, beat)
	o.Listen = broker.ListenOptions{HTTP: "127.0.0.1:0", TCP: "off"}
	rounds := func(context.Context) error { return nil }
	if kit {
		rounds = addKit(&o, pipe)
	}
	b, err := broker.New(o)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return b.Run(ctx) })
		group.Go(func() error { return rounds(ctx) })
		return group.Wait()
	}, nil
}
