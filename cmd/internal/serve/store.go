package serve

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"switchboard/broker"
	"switchboard/cmd/internal/setup"
	"switchboard/configs"
	"switchboard/events"
	"switchboard/internal/redispipe"
	"switchboard/janitor"
	"switchboard/janitor/heartbeat"
	"switchboard/queue"
	"switchboard/registry"
)

// store is the store of a broker.
type store struct {
	run   func(context.Context) error // runs beside the broker, until the context ends
	close func()
	// For the kit:
	pipe   *redispipe.Pipe  // nil in memory
	events *events.Recorder // nil without webhooks
}

// add adds to what the store runs and closes.
func (s *store) add(run func(context.Context) error, closeIt func()) {
	first, closeFirst := s.run, s.close
	s.run = func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return first(ctx) })
		group.Go(func() error { return run(ctx) })
		return group.Wait()
	}
	s.close = func() { closeIt(); closeFirst() }
}

// openStore opens the store and sets it in opts.
func openStore(settings configs.Broker, opts *broker.Options) (store, error) {
	if settings.Redis == "" {
		return openMemory(settings, opts)
	}
	redis, err := setup.OpenRedis(string(settings.Redis), settings.RedisTLS, opts.Registerer, opts.Logger)
	if err != nil {
		return store{}, err
	}
	eventStore := events.NewRedis(redis.Pipe, settings.EventStore())
	reg := registry.NewRedis(redis.Pipe, settings.Registry())
	opts.Store.Registry = setup.RecordChanges(settings.Webhooks, eventStore, reg, opts.Logger)
	opts.Store.SetAckDeadline = setup.SetAckDeadline(settings.Webhooks, eventStore)
	opts.Store.Webhooks = setup.Webhooks(settings.Webhooks, eventStore)
	opts.Store.FieldEnds = setup.FieldEnds(settings.Webhooks, eventStore, redis.Watch.Epoch, opts.Logger)
	queueOptions := settings.Queue()
	queueOptions.Replaced = redis.Watch.Replaced
	opts.Store.Queue = queue.NewRedis(redis.Pipe, queueOptions)
	opts.Store.Janitors, opts.Store.Memory = heartbeat.NewRedis(redis.Pipe, settings.Prefix).List, redis.Memory
	opts.Store.Shared, opts.Store.Changed, opts.Store.Epoch = true, redis.Watch.Changed(), redis.Watch.EpochOf
	opts.Store.Master = redis.Watch.MasterOf
	return store{run: redis.AwaitCheck, close: func() { _ = redis.Close() }, pipe: redis.Pipe, events: setup.Recorder(settings.Webhooks, eventStore)}, nil
}

// openMemory opens a store in memory. Its run function is a janitor, since no other process can
// clean the store up.
func openMemory(settings configs.Broker, opts *broker.Options) (store, error) {
	reg := registry.NewMemory(settings.Registry())
	messages := queue.NewMemory(settings.Queue(), func(channel string) []string {
		servers, _ := reg.ChannelServers(context.Background(), channel) // a memory registry returns no errors
		return servers
	})
	eventStore := events.NewMemory(settings.EventStore())
	recorded := setup.RecordChanges(settings.Webhooks, eventStore, reg, opts.Logger)
	opts.Store.Registry, opts.Store.Queue = recorded, messages
	opts.Store.SetAckDeadline = setup.SetAckDeadline(settings.Webhooks, eventStore)
	opts.Store.Webhooks = setup.Webhooks(settings.Webhooks, eventStore)
	opts.Store.FieldEnds = setup.FieldEnds(settings.Webhooks, eventStore, nil, opts.Logger)
	rounds := janitor.Options{Registry: recorded, Queue: messages, FieldEnds: opts.Store.FieldEnds, Logger: opts.Logger, Registerer: opts.Registerer}
	dispatcher, closeSender, err := setup.NewDispatcher(settings.Webhooks, eventStore, reg, messages, opts.Logger, opts.Registerer)
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
	return store{run: j.Run, close: closeSender, events: setup.Recorder(settings.Webhooks, eventStore)}, nil
}
