package main

import (
	"context"
	"os"

	"switchboard/broker"
	"switchboard/configs"
)

// reloadLoop reads the settings again at every signal. first are those of the start. What is wrong
// is told, and changes nothing.
func reloadLoop(ctx context.Context, signals <-chan os.Signal, load func() (configs.Broker, error), b *broker.Broker, first broker.Options) error {
	log := first.Logger
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-signals:
		}
		settings, err := load()
		var opts broker.Options
		if err == nil {
			opts, err = settings.Options()
		}
		if err == nil {
			err = b.Reload(opts.Access)
		}
		if err != nil {
			log.Error().Err(err).Msg("not reloaded: the keys and namespaces stay as they were")
			continue
		}
		log.Info().Int("api_keys", opts.Access.Keys.Len()).Msg("API keys, token keys and namespaces are reloaded; other settings need a restart")
		opts.Logger, opts.Store.Shared = first.Logger, first.Store.Shared
		warn(opts, settings)
	}
}
