package janitor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"switchboard/events"
	"switchboard/internal/loglimit"
	"switchboard/registry"
)

// Servers is who is listed, alive or not.
type Servers interface {
	Listed(ctx context.Context) ([]string, error)
	Lease(ctx context.Context, server string) (s registry.Server, live bool, err error)
	DeclareDead(ctx context.Context, server string) (buried bool, err error)
	DeclaredDead(ctx context.Context, server string) (bool, error)
	Forget(ctx context.Context, server string) error
}

// Held is what servers hold.
type Held interface {
	HeldChannels(ctx context.Context, server string, n int) ([]string, error)
	UnbindChannel(ctx context.Context, server, channel string) error
	HeldClients(ctx context.Context, server string, n int) ([]string, error)
	ReleaseUser(ctx context.Context, user, client string, generation int64) error
	DropClient(ctx context.Context, server, client string) error
}

// Channels is which channels there are, and who holds them.
type Channels interface {
	Channels(ctx context.Context, prefix, cursor string, limit int) (names []string, next string, err error)
	ChannelServers(ctx context.Context, channel string) ([]string, error)
	PruneChannel(ctx context.Context, channel string) (pruned bool, err error)
}

// Registry is all of a registry that a janitor needs: [registry.Redis] or [registry.Memory].
type Registry interface {
	Servers
	Held
	Channels
}

// Events is what is told to the backend: [events.Dispatcher].
type Events interface {
	DueRound(ctx context.Context) (events.Report, error)
	SendRound(ctx context.Context) (events.Report, error)
	SweepRound(ctx context.Context) (events.Report, error)
}

// Options configures a Janitor.
type Options struct {
	// Registry is who is where. It must be set.
	Registry Registry
	// Queue is what has not been received yet. It must be set.
	Queue Queue
	// Events are made and sent here, beside what else janitors serve. What this janitor frees makes events only if
	// Registry notes it: switchboard/events/noting. Zero means none.
	Events Events

	// ServersEvery is the time between two rounds over the servers. Zero means 3 s.
	ServersEvery time.Duration
	// QueuesEvery is the time between two rounds over the channels. Zero means 5 min.
	QueuesEvery time.Duration
	// EventsEvery is the time between two rounds over what is due, and between two over what is to be sent. Zero
	// means 500 ms.
	EventsEvery time.Duration
	// SweepEvery is the time between two looks for what nobody noted; each looks at a part. Zero means 10 s.
	SweepEvery time.Duration
	// MaxAge is how old the newest message of a channel gets before all of them go. Zero means 30 min.
	MaxAge time.Duration
	// MaxCount is how many messages a channel keeps. Zero means 1000.
	MaxCount int
	// Patience is how long a server without a lease is spared because it answers. Zero means 1 min.
	Patience time.Duration
	// DryRun makes the rounds report what they would do, and change nothing.
	DryRun bool

	// Chunk is how many names of a dead server are cleaned before more are fetched. Zero means 500.
	Chunk int
	// Parallel is how many calls to the stores are under way at once; they share round
	// trips. Zero means 64.
	Parallel int
	// Probe reports whether the process at host (host:port) says that it is server. Zero
	// means a GET of http://host/healthz.
	Probe func(ctx context.Context, host, server string) (alive bool)

	// Logger gets a line for each round of Run that did something or failed. Zero means silence.
	Logger zerolog.Logger
	// Registerer gets the metrics. Zero means that they are kept from view.
	Registerer prometheus.Registerer
}

// Janitor runs the rounds.
type Janitor struct {
	opts    Options
	metrics metrics
	limited *loglimit.Limit // for rounds that fail one after the other

	turn sync.Mutex // one round over the servers at a time; guards the fields below
	// hosts is where each listed server was last seen alive: its description goes with its lease.
	hosts    map[string]string
	suspects map[string]time.Time // listed, without a lease, since when
}

// New checks opts and registers the metrics.
func New(opts Options) (*Janitor, error) {
	opts.ServersEvery = cmp.Or(opts.ServersEvery, 3*time.Second)
	opts.QueuesEvery = cmp.Or(opts.QueuesEvery, 5*time.Minute)
	opts.EventsEvery = cmp.Or(opts.EventsEvery, 500*time.Millisecond)
	opts.SweepEvery = cmp.Or(opts.SweepEvery, 10*time.Second)
	opts.MaxAge = cmp.Or(opts.MaxAge, 30*time.Minute)
	opts.MaxCount = cmp.Or(opts.MaxCount, 1000)
	opts.Patience = cmp.Or(opts.Patience, time.Minute)
	opts.Chunk = cmp.Or(opts.Chunk, 500)
	opts.Parallel = cmp.Or(opts.Parallel, 64)
	if opts.Probe == nil {
		opts.Probe = Healthz
	}
	switch {
	case opts.Registry == nil || opts.Queue == nil:
		return nil, errors.New("janitor: Registry and Queue must be set")
	case min(opts.ServersEvery, opts.QueuesEvery, opts.MaxAge, opts.Patience) < 0:
		return nil, errors.New("janitor: ServersEvery, QueuesEvery, MaxAge and Patience must not be negative")
	case min(opts.EventsEvery, opts.SweepEvery) < 0:
		return nil, errors.New("janitor: EventsEvery and SweepEvery must not be negative")
	case min(opts.MaxCount, opts.Chunk, opts.Parallel) < 0:
		return nil, errors.New("janitor: MaxCount, Chunk and Parallel must not be negative")
	}
	j := &Janitor{opts: opts, limited: loglimit.New(opts.Logger, loglimit.Every), hosts: map[string]string{}, suspects: map[string]time.Time{}}
	if err := j.metrics.register(opts.Registerer); err != nil {
		return nil, fmt.Errorf("janitor: %w", err)
	}
	return j, nil
}

// Run makes all kinds of rounds until ctx ends, and then returns nil. A round that
// fails is logged; the next one tries again.
func (j *Janitor) Run(ctx context.Context) error {
	defer j.limited.Close()
	var g errgroup.Group
	g.Go(func() error { return j.loop(ctx, servers, j.opts.ServersEvery, j.ServersRound) })
	g.Go(func() error { return j.loop(ctx, queues, j.opts.QueuesEvery, j.QueuesRound) })
	for _, r := range j.eventRounds() {
		g.Go(func() error { return j.loop(ctx, r.kind, r.every, r.round) })
	}
	return g.Wait()
}

func (j *Janitor) loop(ctx context.Context, kind string, every time.Duration, round func(context.Context) (Report, error)) error {
	// The first wait is any part of the interval, so that janitors started together
	// do not all sweep together.
	timer := time.NewTimer(rand.N(every))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		did, err := round(ctx)
		if err != nil && ctx.Err() == nil {
			j.limited.Warn("janitor: a round was not complete: "+kind, func(e *zerolog.Event) { e.Err(err) })
		}
		if !did.Empty() {
			j.opts.Logger.WithLevel(levelOf(kind)).Str("round", kind).EmbedObject(did).Msg("janitor: cleaned up")
		}
		timer.Reset(every - every/10 + rand.N(every/5+1))
	}
}

// Once makes one round of each kind, for a janitor that is started by cron. It has no
// memory of an earlier round, so it takes the two looks at the servers that a
// death needs by itself, and waits ServersEvery between them, though only when
// somebody is without a lease: after an outage of the store all leases are gone,
// and the servers need one beat to renew them. Addresses that only an earlier round could have
// seen are not probed.
func (j *Janitor) Once(ctx context.Context) (Report, error) {
	did, err := j.ServersRound(ctx)
	errs := []error{err}
	if did.Suspected > 0 {
		select {
		case <-time.After(j.opts.ServersEvery):
		case <-ctx.Done():
			return did, errors.Join(err, ctx.Err())
		}
		more, err := j.ServersRound(ctx)
		did, errs = did.plus(more), append(errs, err)
	}
	more, err := j.QueuesRound(ctx)
	did, errs = did.plus(more), append(errs, err)
	for _, r := range j.eventRounds() {
		more, err := r.round(ctx)
		did, errs = did.plus(more), append(errs, err)
	}
	return did, errors.Join(errs...)
}
