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
	"switchboard/internal/leader"
	"switchboard/internal/loglimit"
	"switchboard/internal/setting"
	"switchboard/janitor/task"
	"switchboard/queue"
	"switchboard/registry"
)

// Servers lists servers, reads their leases, and declares them dead.
type Servers interface {
	Listed(ctx context.Context) ([]string, error)
	Lease(ctx context.Context, server string) (s registry.Server, live bool, err error)
	DeclareDead(ctx context.Context, server string) (dead bool, err error)
	DeclaredDead(ctx context.Context, server string) (bool, error)
	Forget(ctx context.Context, server string) error
	NotifyStates(ctx context.Context, servers []string) error
}

// Bindings lists and removes the bindings of one server.
type Bindings interface {
	HeldChannels(ctx context.Context, server string, n int) ([]string, error)
	UnbindChannel(ctx context.Context, server, channel string) error
	HeldClients(ctx context.Context, server string, n int) ([]string, error)
	ReleaseUser(ctx context.Context, user, client string, generation int64) (watchers []string, err error)
	DropClient(ctx context.Context, server, client string) error
}

// Channels lists channels and their servers.
type Channels interface {
	Channels(ctx context.Context, prefix, cursor string, limit int) (names []string, next string, err error)
	ChannelServers(ctx context.Context, channel string) ([]string, error)
	PruneChannel(ctx context.Context, channel string) (pruned bool, err error)
	MoveChannelList(ctx context.Context) (moved int, err error)
}

// Registry has the methods of a registry that a janitor calls. [registry.Redis] and
// [registry.Memory] implement it.
type Registry interface {
	Servers
	Bindings
	Channels
}

// Events creates and sends events in rounds. [events.Dispatcher] implements it.
type Events interface {
	DueRound(ctx context.Context) (events.Report, error)
	SendRound(ctx context.Context) (events.Report, error)
	SweepRound(ctx context.Context) (events.Report, error)
}

// FieldEnds schedules the checks that create the events of fields that end. The
// type Fields of package events/recording implements it.
type FieldEnds interface {
	Changed(ctx context.Context, channels []string, changes []queue.Appended)
}

// Options configures a Janitor. Zero means the default in a field's tag, if it has one.
type Options struct {
	// Registry holds the servers and their bindings. It must be set.
	Registry Registry
	// Queue holds the messages. It must be set.
	Queue Queue
	// Events creates and sends events. The changes that this janitor makes create events only if
	// Registry records them: see switchboard/events/recording. Zero means no events.
	Events Events
	// FieldEnds learns which states this janitor has changed. Zero means that a SweepRound of Events
	// finds the fields that have ended, which takes longer if many channels have fields.
	FieldEnds FieldEnds
	// Rounds are the rounds of packages that the janitor does not know. A janitor with DryRun does not
	// run them. Zero means none.
	Rounds []task.Round

	// Leases make one of several janitors run QueuesRound, StatesRound and Rounds for all. Run runs
	// them. Zero means that each janitor runs its own. A janitor with DryRun does not use them.
	Leases *leader.Leases
	// Epoch returns a number that changes at each restart or failover of the store. Zero means that
	// it never changes.
	Epoch func() uint64

	ServersEvery time.Duration `setting:"servers_every" flag:"DURATION" default:"3s" help:"interval of checks for dead servers"`
	QueuesEvery  time.Duration `setting:"queues_every" flag:"DURATION" default:"5m" help:"interval of rounds over the channels"`
	StatesEvery  time.Duration `setting:"states_every" flag:"DURATION" default:"5m" help:"interval of rounds over the states of channels"`
	// EventsEvery is the interval of the rounds that check due entries, and of the rounds that send
	// events. Zero means 500 ms.
	EventsEvery time.Duration
	// SweepEvery is the interval of the rounds that look for changes that were not recorded. Each
	// round looks at a part of the entries. Zero means 10 s.
	SweepEvery time.Duration
	MaxAge     time.Duration `setting:"max_age" flag:"DURATION" default:"30m" help:"a channel is emptied if its newest message is older"`
	MaxCount   int           `setting:"max_messages" flag:"N" default:"1000" help:"newest messages that a channel keeps"`
	// Patience is how long a server that answers may be without a lease before it is declared dead.
	Patience time.Duration `setting:"patience" default:"1m" help:"how long a server without a lease counts as alive while it answers /healthz"`
	DryRun   bool          `setting:"dry_run" flag:"" unset:"default no" help:"only report what would be done"`

	// Chunk is how many bindings of a dead server are fetched and removed at a time. Zero means 500.
	Chunk int
	// Parallel is the largest number of concurrent calls to the stores. They share round trips. Zero
	// means 64.
	Parallel int
	// Probe reports whether the process at host (host:port) answers with the id server. Zero means
	// [Healthz].
	Probe func(ctx context.Context, host, server string) (alive bool)

	// Heartbeats records that this janitor runs, under ID. Zero means that nothing is recorded. A
	// janitor with DryRun is never recorded.
	Heartbeats Heartbeats
	// ID is the name of this janitor in Heartbeats.
	ID string
	// Version is the version that Heartbeats shows. Zero means none.
	Version string

	// Logger receives a line for each round of Run that changed something or failed. Zero means
	// silence.
	Logger zerolog.Logger
	// Registerer registers the metrics. Zero means that they are not registered.
	Registerer prometheus.Registerer
}

// A Janitor runs rounds over servers, queues and events.
type Janitor struct {
	opts    Options
	metrics metrics
	limited *loglimit.Limit // limits the warnings about failed rounds

	progress progress
	// schedules has the rounds that one janitor makes for all.
	schedules map[string]*schedule

	serversMu sync.Mutex // allows one ServersRound at a time; guards the fields below
	// hosts has the last known address of each listed server. The registry loses it with the lease.
	hosts map[string]string
	// suspects has the servers without a lease, and when they were first seen without one.
	suspects map[string]time.Time
}

// New validates opts and registers the metrics.
func New(opts Options) (*Janitor, error) {
	setting.Fill(&opts)
	opts.EventsEvery = cmp.Or(opts.EventsEvery, 500*time.Millisecond)
	opts.SweepEvery = cmp.Or(opts.SweepEvery, 10*time.Second)
	opts.Chunk = cmp.Or(opts.Chunk, 500)
	opts.Parallel = cmp.Or(opts.Parallel, 64)
	if opts.Probe == nil {
		opts.Probe = Healthz
	}
	switch {
	case opts.Heartbeats != nil && opts.ID == "":
		return nil, errors.New("janitor: Heartbeats needs an ID")
	case opts.Registry == nil || opts.Queue == nil:
		return nil, errors.New("janitor: Registry and Queue must be set")
	case min(opts.ServersEvery, opts.QueuesEvery, opts.MaxAge, opts.Patience) < 0:
		return nil, errors.New("janitor: ServersEvery, QueuesEvery, MaxAge and Patience must not be negative")
	case min(opts.StatesEvery, opts.EventsEvery, opts.SweepEvery) < 0:
		return nil, errors.New("janitor: StatesEvery, EventsEvery and SweepEvery must not be negative")
	case min(opts.MaxCount, opts.Chunk, opts.Parallel) < 0:
		return nil, errors.New("janitor: MaxCount, Chunk and Parallel must not be negative")
	}
	if err := checkRounds(opts.Rounds); err != nil {
		return nil, fmt.Errorf("janitor: %w", err)
	}
	j := &Janitor{opts: opts, limited: loglimit.New(opts.Logger, loglimit.Every), hosts: map[string]string{}, suspects: map[string]time.Time{}}
	j.addSchedules()
	j.progress = progress{started: time.Now(), rounds: map[string]roundProgress{}}
	if err := j.metrics.register(opts.Registerer); err != nil {
		return nil, fmt.Errorf("janitor: %w", err)
	}
	return j, nil
}

// Run runs rounds of all kinds until ctx ends, and then returns nil. It logs a failed round, and
// the next round tries again.
func (j *Janitor) Run(ctx context.Context) error {
	defer j.limited.Close()
	var g errgroup.Group
	g.Go(func() error { return j.report(ctx) })
	if j.opts.Leases != nil {
		g.Go(func() error { return j.opts.Leases.Run(ctx) })
	}
	g.Go(func() error { return j.loop(ctx, servers, j.opts.ServersEvery, j.ServersRound) })
	for _, r := range j.sharedRounds() {
		g.Go(func() error { return j.leadLoop(ctx, r) })
	}
	for _, r := range j.eventRounds() {
		g.Go(func() error { return j.loop(ctx, r.kind, r.every, r.round) })
	}
	return g.Wait()
}

// sharedRounds returns the rounds that one janitor makes for all.
func (j *Janitor) sharedRounds() []repeated {
	return append([]repeated{
		{kind: queues, every: j.opts.QueuesEvery, round: j.QueuesRound, schedule: j.schedules[queues]},
		{kind: states, every: j.opts.StatesEvery, round: j.StatesRound, schedule: j.schedules[states]},
	}, j.otherRounds()...)
}

// leadLoop makes the rounds of a kind while this janitor leads.
func (j *Janitor) leadLoop(ctx context.Context, r repeated) error {
	s := r.schedule
	timer := time.NewTimer(0)
	defer timer.Stop()
	var next time.Time // of the next round
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		now := time.Now()
		if s.begins() {
			next = now
			if s.lease == nil {
				next = now.Add(rand.N(s.every)) // as loop does
			}
			j.progress.repeats(r.kind, s.calm)
		}
		switch {
		case !s.leads:
			j.progress.forget(r.kind)
		case !now.Before(next):
			next = now.Add(s.every - s.every/10 + rand.N(s.every/5+1))
			if s.isDue(now) && j.runRound(ctx, r) == nil {
				s.ended(now)
			}
		}
		timer.Reset(max(0, min(lookEvery, time.Until(next))))
		if !s.leads {
			timer.Reset(lookEvery)
		}
	}
}

// runRound makes a round, and notes in the lease whether it failed.
func (j *Janitor) runRound(ctx context.Context, r repeated) error {
	return r.schedule.lease.Do(ctx, true, func(ctx context.Context) error { return j.logged(ctx, r.kind, r.round) })
}

func (j *Janitor) loop(ctx context.Context, kind string, every time.Duration, round func(context.Context) (Report, error)) error {
	j.progress.repeats(kind, every)
	// The first wait is a random part of the interval, so that janitors that start at the same time do
	// not run their rounds at the same time.
	timer := time.NewTimer(rand.N(every))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		_ = j.logged(ctx, kind, round)
		timer.Reset(every - every/10 + rand.N(every/5+1))
	}
}

// logged makes a round, and logs its error and what it has changed.
func (j *Janitor) logged(ctx context.Context, kind string, round func(context.Context) (Report, error)) error {
	report, err := round(ctx)
	if err != nil && ctx.Err() == nil {
		j.limited.Warn("janitor: incomplete round: "+kind, func(e *zerolog.Event) { e.Err(err) })
	}
	if !report.Empty() {
		j.opts.Logger.WithLevel(levelOf(kind)).Str("round", kind).EmbedObject(report).Msg("janitor: cleaned up")
	}
	return err
}

// Once runs one round of each kind, for a janitor that is started by cron. To declare a server dead
// takes two rounds. So if a server has no lease, Once waits for ServersEvery and runs a second
// ServersRound: after an outage of the store all leases have expired, and the servers need one beat
// to renew them. Once does not probe the address of a server that had no lease in the first round,
// because it does not know the address.
func (j *Janitor) Once(ctx context.Context) (Report, error) {
	report, err := j.ServersRound(ctx)
	errs := []error{err}
	run := func(round func(context.Context) (Report, error)) {
		more, err := round(ctx)
		report.add(more)
		errs = append(errs, err)
	}
	if report.Suspected > 0 {
		select {
		case <-time.After(j.opts.ServersEvery):
		case <-ctx.Done():
			return report, errors.Join(err, ctx.Err())
		}
		run(j.ServersRound)
	}
	run(j.QueuesRound)
	run(j.StatesRound)
	for _, r := range append(j.otherRounds(), j.eventRounds()...) {
		run(r.round)
	}
	j.reportOnce(ctx, true)
	return report, errors.Join(errs...)
}
