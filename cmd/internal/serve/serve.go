// Package serve runs a broker with the settings of its command line, environment and file.
package serve

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"switchboard/broker"
	"switchboard/cmd/internal/setup"
	"switchboard/configs"
	"switchboard/internal/console"
)

// Run runs a broker until the process receives SIGTERM or SIGINT. args are the flags, without the
// name of a command, and environ has the form of os.Environ. It logs to stderr. Run sets
// GOMAXPROCS, and may execute the program again to set its timer slack, so call it first.
//
// The errors are those of configs.LoadBroker, and those of the start.
func Run(args, environ []string, stderr io.Writer) error {
	settings, err := configs.LoadBroker(args, environ)
	if err != nil {
		return err
	}
	spare, err := settings.Runtime.Spare()
	if err != nil {
		return err
	}
	coarseTimers(settings.Runtime.TimerSlack, args)
	processors := newProcessors(spare, machineReader(), runtime.GOMAXPROCS)
	ctx, stop := setup.UntilSignal()
	defer stop()
	load := func() (configs.Broker, error) { return configs.LoadBroker(args, environ) }
	return serve(ctx, settings, load, processors, stderr, func(broker.Addrs) {})
}

// Broker runs a broker with these settings until ctx ends, as a part of a program. It calls ready
// with the addresses of its ports when they are open. It sets GOMAXPROCS, like [Run]; the settings
// of runtime and reloads have no effect.
func Broker(ctx context.Context, settings configs.Broker, stderr io.Writer, ready func(broker.Addrs)) error {
	same := func() (configs.Broker, error) { return settings, nil }
	return serve(ctx, settings, same, newProcessors(configs.AutoSpare, machineReader(), runtime.GOMAXPROCS), stderr, ready)
}

// errWindows refuses to run a broker on Windows. There, gnet has a goroutine for each connection
// and blocks a whole event loop while one client does not read.
var errWindows = errors.New("a broker does not run on Windows: run it in WSL 2 or in a container (docs/guides/deploy.md); " +
	"the other commands work here, with the address of a broker in SWITCHBOARD_URL or --url")

// serve runs a broker until ctx ends. load reads the settings again.
func serve(
	ctx context.Context, settings configs.Broker, load func() (configs.Broker, error), p *processors, stderr io.Writer,
	ready func(broker.Addrs),
) error {
	if runtime.GOOS == "windows" {
		return errWindows
	}
	hangups := make(chan os.Signal, 1) // one is enough: several signals cause one reload
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	opts, err := settings.Options()
	if err != nil {
		return err
	}
	if opts.Logger, err = setup.Log(stderr, settings.LogLevel, settings.LogFormat); err != nil {
		return err
	}
	opts.Runtime.Loops = p.loops
	opts.Version, opts.Registerer = setup.Version(), prometheus.NewRegistry()
	store, err := openStore(settings, &opts)
	if err != nil {
		return err
	}
	defer func() { store.close() }()
	if err := addKit(settings, &opts, &store); err != nil {
		return err
	}
	if settings.Console == "on" {
		if opts.Console, err = console.New(); err != nil {
			return err
		}
	}
	b, err := broker.New(opts)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return b.Run(ctx) })
	group.Go(func() error { return releaseMemory(ctx) })
	group.Go(func() error { return p.follow(ctx, opts.Logger) })
	group.Go(func() error { return reloadLoop(ctx, hangups, load, b, opts) })
	group.Go(func() error {
		// Warn after the ports are open: a broker that cannot start only logs the reason.
		addrs, err := b.Addrs(ctx)
		if err != nil {
			return nil // b.Run returns the reason
		}
		warn(opts, settings)
		if settings.Console == "on" {
			opts.Logger.Info().Strs("url", consoleURLs(addrs.HTTP, opts.Listen.TLS != nil)).Msg("console")
		}
		ready(addrs)
		return store.run(ctx)
	})
	return group.Wait()
}

// warn logs settings that the operator may not have intended, at the start and after each reload.
func warn(opts broker.Options, settings configs.Broker) {
	const single = "single instance: the store is in memory and ends with this process"
	const open = "no API keys and no token keys: every caller may push, and connect as any user"
	switch log := opts.Logger; {
	case !opts.Store.Shared && opts.Access.Open():
		log.Warn().Bool("open", true).Msg(single + "; " + open)
	case !opts.Store.Shared:
		log.Warn().Msg(single)
	case opts.Access.Open():
		log.Warn().Bool("open", true).Msg(open)
	}
	if opts.UnencryptedLinks() {
		opts.Logger.Warn().Msg("the links between instances are not encrypted: without peer_tls the network between them can read and change messages")
	}
	if opts.Links.HintFault != "" {
		opts.Logger.Warn().Str("faults.hints", opts.Links.HintFault).Msg("a deliberate fault is active; this is only for tests")
	}
	if opts.Access.Keys.Plain() {
		opts.Logger.Warn().Msg("an API key is configured in plain text: broker key --stdin prints an entry without it")
	}
	if unchecked := settings.Auth.UncheckedClaims(); len(unchecked) > 0 {
		opts.Logger.Warn().Strs("missing", unchecked).
			Msg("auth.jwks_url without these settings accepts tokens that its issuer signed for other services")
	}
	setup.WarnExposed(opts.Logger, settings.ExposedFiles())
	setup.WarnUnknown(opts.Logger, settings.Unknown)
}
