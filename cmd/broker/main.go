// Command broker holds client connections and lets a backend reach them; see --help.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"switchboard/broker"
	"switchboard/cmd/internal/setup"
	"switchboard/configs"
)

func main() {
	coarseTimers()
	os.Exit(run(os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}

func run(args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		switch args[0] {
		case "check":
			return check(args[1:], environ, stdin, stdout, stderr)
		case "key":
			return key(args[1:], stdin, stdout, stderr)
		}
	}
	loops := processors()
	settings, err := configs.LoadBroker(args, environ)
	if err == nil {
		ctx, stop := setup.UntilSignal()
		defer stop()
		load := func() (broker.Options, error) {
			again, err := configs.LoadBroker(args, environ)
			if err != nil {
				return broker.Options{}, err
			}
			return again.Options()
		}
		err = serve(ctx, settings, load, loops, stderr)
	}
	return setup.Exit("broker", configs.BrokerHelp(), err, stdout, stderr)
}

// serve runs a broker until ctx ends. load reads the settings again.
func serve(ctx context.Context, settings configs.Broker, load func() (broker.Options, error), loops int, stderr io.Writer) error {
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
	opts.Loops = loops
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
	group.Go(func() error { return reloadLoop(ctx, hangups, load, b, opts.Logger) })
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

// warn says what the operator may not have meant.
func warn(opts broker.Options, settings configs.Broker) {
	const alone = "running alone: the store is in memory and nothing outlives this process"
	const open = "no API keys and no token keys: whoever reaches this broker may push, and be anybody"
	switch log := opts.Logger; {
	case !opts.Shared && opts.Open():
		log.Warn().Bool("open", true).Msg(alone + "; " + open)
	case !opts.Shared:
		log.Warn().Msg(alone)
	case opts.Open():
		log.Warn().Bool("open", true).Msg(open)
	}
	if opts.HintFault != "" {
		opts.Logger.Warn().Str("faults.hints", opts.HintFault).Msg("a fault is switched on; this is for tests only")
	}
	if opts.Tokens.Weak() {
		opts.Logger.Warn().Msg("an HS256 secret has less than 32 bytes: whoever has a token may find it by trying")
	}
	if opts.Keys.Plain() {
		opts.Logger.Warn().Msg("an API key is configured as it is, and may do everything: broker key --stdin makes an entry that does not tell it")
	}
	setup.WarnUnknown(opts.Logger, settings.Unknown)
}
