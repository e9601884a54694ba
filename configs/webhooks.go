package configs

import (
	"errors"

	"switchboard/events"
	"switchboard/internal/backend"
	"switchboard/webhook"
)

// Webhooks are the events for the backend. Both programs read them: brokers record what has
// changed, and janitors send the events.
type Webhooks struct {
	URL         Secret          `setting:"webhooks.url" unset:"default none: no events" help:"https URL (http on the loopback address) that receives the events; brokers and\njanitors need it"`
	Secrets     []Secret        `setting:"webhooks.secrets" unset:"required on janitors" help:"secrets of at least 16 bytes; every delivery has a signature with each, which allows rotation"`
	SecretsFile string          `setting:"webhooks.secrets_file" help:"a file with one per line instead; # begins a comment"`
	Delivery    webhook.Options `json:"-"`
	Dispatch    events.Options  `json:"-"`
}

func (w Webhooks) validate() error {
	if len(w.Secrets) > 0 && w.SecretsFile != "" {
		return errors.New("webhooks.secrets and webhooks.secrets_file: both are given, keep one")
	}
	return nil
}

// Enabled reports whether there are events at all.
func (w Webhooks) Enabled() bool { return w.URL != "" }

// Kinds returns the wanted kinds of events, nil for all.
func (w Webhooks) Kinds() []events.Kind { return w.Dispatch.Wanted }

// Sender returns the options of the sender. It reads the secrets file.
func (w Webhooks) Sender() (o webhook.Options, err error) {
	o = w.Delivery
	o.URL = string(w.URL)
	o.Secrets, err = secretsOf("webhooks.secrets", w.Secrets, w.SecretsFile, backend.CheckSecret)
	return o, err
}

// Dispatcher returns the options of the dispatcher, without the store, the truth, the sender, the
// logger and the metrics.
func (w Webhooks) Dispatcher() events.Options { return w.Dispatch }

// EventStore returns the options of the broker's event store.
func (b Broker) EventStore() events.StoreOptions { return events.StoreOptions{Prefix: b.Prefix} }

// EventStore returns the options of the janitor's event store.
func (j Janitor) EventStore() events.StoreOptions { return events.StoreOptions{Prefix: j.Prefix} }
