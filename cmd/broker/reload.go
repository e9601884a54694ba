package main

import (
	"context"
	"os"

	"github.com/rs/zerolog"

	"switchboard/broker"
)

// reloadLoop reads the settings again at every signal. What is wrong is told, and changes nothing.
func reloadLoop(ctx context.Context, signals <-chan os.Signal, load func() (broker.Options, error), b *broker.Broker, log zerolog.Logger) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-signals:
		}
		opts, err := load()
		if err == nil {
			err = b.Reload(opts)
		}
		if err != nil {
			log.Error().Err(err).Msg("not reloaded: the keys and namespaces stay as they were")
			continue
		}
		log.Info().Int("api_keys", opts.Keys.Len()).Msg("API keys, token keys and namespaces are reloaded; other settings need a restart")
	}
}
