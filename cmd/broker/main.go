// Command broker holds client connections and lets a backend reach them; see --help.
package main

import (
	"context"
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
)

func main() { os.Exit(run(os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr)) }

func run(args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		switch args[0] {
		case "check":
			return check(args[1:], environ, stdin, stdout, stderr)
		case "key":
			return key(args[1:], stdin, stdout, stderr)
		}
	}
	settings, err := configs.LoadBroker(args, environ)
	var spare int
	if err == nil {
		spare, err = settings.Runtime.Spare()
	}
	if err == nil {
		coarseTimers(settings.Runtime.TimerSlack, args)
		places := newProcessors(spare, lookAround(), runtime.GOMAXPROCS)
		ctx, stop := setup.UntilSignal()
		defer stop()
		load := func() (configs.Broker, error) { return configs.LoadBroker(args, environ) }
		err = serve(ctx, settings, load, places, stderr)
	}
	return setup.Exit("broker", configs.BrokerHelp(), err, stdout, stderr)
}

// serve runs a broker until ctx ends. load reads the settings again.
func serve(
	ctx context.Context, settings configs.Broker, load func() (configs.Broker, error), places *processors, stderr io.Writer,
) error {
	hangups := make(chan os.Signal, 1) // one is enough: the settings are read when it is taken
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	opts, err := settings.Options()
	if err != nil {
		return err
	}
	if opts.Logger, err = setup.Log(stderr, settings.LogLevel, settings.LogFormat); err != nil {
		return err
	}
	opts.Runtime.Loops = places.loops
	opts.Version, opts.Registerer = setup.Version(), prometheus.NewRegistry()
	store, err := openStore(settings, &opts)
	if err != nil {
		return err
	}
	defer store.close()
	b, err := broker.New(opts)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return b.Run(ctx) })
	group.Go(func() error { return tendMemory(ctx) })
	group.Go(func() error { return places.follow(ctx, opts.Logger) })
	group.Go(func() error { return reloadLoop(ctx, hangups, load, b, opts) })
	group.Go(func() error {
		// What there is to warn of comes when the ports are open: a broker that
		// cannot start says only why.
		if _, err := b.Addrs(ctx); err != nil {
			return nil // b.Run has the reason
		}
		warn(opts, settings)
		return store.tend(ctx)
	})
	return group.Wait()
}

// warn says what the operator may not have meant, at the start and after each reload.
func warn(opts broker.Options, settings configs.Broker) {
	const alone = "running alone: the store is in memory and nothing outlives this process"
	const open = "no API keys and no token keys: whoever reaches this broker may push, and be anybody"
	switch log := opts.Logger; {
	case !opts.Store.Shared && opts.Access.Open():
		log.Warn().Bool("open", true).Msg(alone + "; " + open)
	case !opts.Store.Shared:
		log.Warn().Msg(alone)
	case opts.Access.Open():
		log.Warn().Bool("open", true).Msg(open)
	}
	if opts.UnencryptedLinks() {
		opts.Logger.Warn().Msg("the links between instances are not encrypted: without peer_tls whatever is on the network between them can read and change messages")
	}
	if opts.Links.HintFault != "" {
		opts.Logger.Warn().Str("faults.hints", opts.Links.HintFault).Msg("a fault is switched on; this is for tests only")
	}
	if opts.Access.Keys.Plain() {
		opts.Logger.Warn().Msg("an API key is configured as it is: broker key --stdin makes an entry that does not tell it")
	}
	if unchecked := settings.Auth.UncheckedClaims(); len(unchecked) > 0 {
		opts.Logger.Warn().Strs("missing", unchecked).
			Msg("auth.jwks_url without these takes tokens that its issuer signed for other services")
	}
	setup.WarnExposed(opts.Logger, settings.ExposedFiles())
	setup.WarnUnknown(opts.Logger, settings.Unknown)
}
