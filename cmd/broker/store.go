package main

import (
	"context"
	"fmt"

	"switchboard/broker"
	"switchboard/cmd/internal/setup"
	"switchboard/configs"
	"switchboard/events"
	"switchboard/janitor"
	"switchboard/queue"
	"switchboard/registry"
)

// store is what stands behind the two interfaces.
type store struct {
	tend  func(context.Context) error // what it needs while the broker runs
	close func()
}

// openStore puts the store into opts.
func openStore(settings configs.Broker, opts *broker.Options) (store, error) {
	if settings.Redis == "" {
		return openMemory(settings, opts)
	}
	redis, err := setup.OpenRedis(string(settings.Redis), settings.RedisTLS, opts.Registerer, opts.Logger)
	if err != nil {
		return store{}, err
	}
	happened := events.NewRedis(redis.Pipe, settings.EventStore())
	where := registry.NewRedis(redis.Pipe, settings.Registry())
	opts.Store.Registry = setup.Noting(settings.Webhooks, happened, where, opts.Logger)
	opts.Store.SetAckDeadline = setup.Watch(settings.Webhooks, happened)
	waiting := settings.Queue()
	waiting.Fresh = redis.Watch.Fresh
	opts.Store.Queue = queue.NewRedis(redis.Pipe, waiting)
	opts.Store.Shared, opts.Store.Changed, opts.Store.Epoch = true, redis.Watch.Changed(), redis.Watch.Epoch
	return store{tend: redis.Settle, close: func() { _ = redis.Close() }}, nil
}

// openMemory has the janitor's rounds made in this process: nobody else can.
func openMemory(settings configs.Broker, opts *broker.Options) (store, error) {
	where := registry.NewMemory(settings.Registry())
	waiting := queue.NewMemory(settings.Queue(), func(channel string) []string {
		servers, _ := where.ChannelServers(context.Background(), channel) // memory does not fail
		return servers
	})
	happened := events.NewMemory(settings.EventStore())
	opts.Store.Registry, opts.Store.Queue = setup.Noting(settings.Webhooks, happened, where, opts.Logger), waiting
	opts.Store.SetAckDeadline = setup.Watch(settings.Webhooks, happened)
	rounds := janitor.Options{Registry: opts.Store.Registry, Queue: waiting, Logger: opts.Logger, Registerer: opts.Registerer}
	dispatcher, end, err := setup.Events(settings.Webhooks, happened, where, waiting, opts.Logger, opts.Registerer)
	if err != nil {
		return store{}, err
	}
	if dispatcher != nil {
		rounds.Events = dispatcher
	}
	j, err := janitor.New(rounds)
	if err != nil {
		return store{}, fmt.Errorf("janitor: %w", err)
	}
	return store{tend: j.Run, close: end}, nil
}
