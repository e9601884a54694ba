// Package sweep runs a janitor with the settings of its command line, environment and file.
package sweep

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"switchboard/broker/work"
	"switchboard/cmd/internal/setup"
	"switchboard/configs"
	"switchboard/events"
	"switchboard/internal/leader"
	"switchboard/internal/loglimit"
	"switchboard/internal/redisurl"
	"switchboard/janitor"
	"switchboard/janitor/heartbeat"
	"switchboard/queue"
	"switchboard/registry"
)

// Run runs a janitor until the process receives SIGTERM or SIGINT, or for one round, or prints the
// dead letters. args are the flags, without the name of a command, and environ has the form of
// os.Environ. It logs to stderr. The errors are those of configs.LoadJanitor, and those of the
// start.
func Run(args, environ []string, stdout, stderr io.Writer) error {
	settings, err := configs.LoadJanitor(args, environ)
	if err != nil {
		return err
	}
	ctx, stop := setup.UntilSignal()
	defer stop()
	return serve(ctx, settings, stdout, stderr)
}

// serve runs a janitor until ctx ends, or for one round, or prints the dead letters.
func serve(ctx context.Context, settings configs.Janitor, stdout, stderr io.Writer) error {
	log, err := setup.Log(stderr, settings.LogLevel, settings.LogFormat)
	if err != nil {
		return err
	}
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	redis, err := setup.OpenRedis(string(settings.Redis), settings.RedisTLS, metrics, log)
	if err != nil {
		return err
	}
	defer redis.Close()
	eventStore := events.NewRedis(redis.Pipe, settings.EventStore())
	if settings.DeadLetters {
		return deadLetters(ctx, eventStore, settings.Retry, stdout, log)
	}
	opts := settings.Options
	links, err := settings.PeerTLS.Files()
	if err != nil {
		return err
	}
	if links != nil { // brokers with peer_tls only answer callers with a certificate
		opts.Probe = janitor.HealthzTLS(func() *tls.Config { return links.Fresh(log) })
	}
	reg, messages := registry.NewRedis(redis.Pipe, settings.Registry()), queue.NewRedis(redis.Pipe, settings.Queue())
	opts.Registry, opts.Queue = setup.RecordChanges(settings.Webhooks, eventStore, reg, log), messages
	opts.FieldEnds = setup.FieldEnds(settings.Webhooks, eventStore, nil, log)
	opts.Logger, opts.Registerer, opts.Rounds = log, metrics, rounds(messages, redis.Pipe, settings.Prefix)
	dispatcher, closeSender, err := setup.NewDispatcher(settings.Webhooks, eventStore, reg, messages, log, metrics)
	if err != nil {
		return err
	}
	defer closeSender()
	if dispatcher != nil {
		opts.Events = dispatcher
	}
	opts.Heartbeats, opts.ID, opts.Version = heartbeat.NewRedis(redis.Pipe, settings.Prefix), janitorID(settings.Once), setup.Version()
	opts.Leases, opts.Epoch = leader.New(redis.Pipe, settings.Prefix+"j_r_", log), redis.Watch.Epoch
	j, err := janitor.New(opts)
	if err != nil {
		return err
	}
	// Eviction does not harm a janitor, so it only warns and continues.
	tolerate := func(err error) error {
		if errors.Is(err, redisurl.ErrEvicts) {
			log.Warn().Err(err).Msg("brokers refuse this Redis")
			return nil
		}
		return err
	}
	setup.WarnUnknown(log, settings.Unknown)
	setup.WarnExposed(log, settings.ExposedFiles())
	if settings.Once {
		if err := tolerate(redis.Check(ctx)); err != nil {
			return err
		}
		return once(ctx, j, log)
	}
	limited := loglimit.New(log, loglimit.Every)
	defer limited.Close()
	probes, err := listen(settings.HTTP, redis, metrics, limited.Logger())
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return probes.serve(ctx) })
	group.Go(func() error { return tolerate(redis.AwaitCheck(ctx)) })
	// So that the watch notices the failover of a master that the janitor rarely needs. Errors concern
	// masters that are down: a later call succeeds.
	group.Go(func() error { return work.Every(ctx, masterCalls, func() { _ = redis.Watch.Begin(ctx) }) })
	group.Go(func() error {
		log.Info().Str("http", probes.addr()).Bool("dry_run", settings.Options.DryRun).Bool("events", dispatcher != nil).Msg("working")
		return j.Run(ctx)
	})
	return group.Wait()
}

// masterCalls is the interval of calls to all masters.
const masterCalls = 20 * time.Second

// janitorID returns the name under which this janitor reports that it runs. With once it has no
// random part, so that the janitors that cron starts on one host replace each other's record.
func janitorID(once bool) string {
	host, err := os.Hostname()
	if err != nil {
		host = "janitor"
	}
	if once {
		return host
	}
	return host + "-" + strings.ToLower(rand.Text()[:8])
}

// once makes one round.
func once(ctx context.Context, j *janitor.Janitor, log zerolog.Logger) error {
	report, err := j.Once(ctx)
	if err == nil {
		log.Info().EmbedObject(report).Msg("the round is complete")
	}
	return err
}
