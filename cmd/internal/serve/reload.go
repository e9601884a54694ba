package serve

import (
	"context"
	"os"

	"switchboard/broker"
	"switchboard/configs"
)

// reloadLoop reloads the access rules at every signal, until ctx ends. first are the options at the
// start. An error is logged and changes nothing.
func reloadLoop(
	ctx context.Context, signals <-chan os.Signal, load func() (configs.Broker, error), b *broker.Broker, first broker.Options,
) error {
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
			log.Error().Err(err).Msg("the reload failed: keys and namespaces are unchanged")
			continue
		}
		log.Info().Int("api_keys", opts.Access.Keys.Len()).Msg("reloaded API keys, token keys and namespaces; other settings need a restart")
		// settings.Options leaves out the logger and the store.
		opts.Logger, opts.Store.Shared = first.Logger, first.Store.Shared
		warn(opts, settings)
	}
}
