package configs

import (
	"errors"
	"time"

	"switchboard/events"
	"switchboard/internal/backend"
	"switchboard/webhook"
)

// Webhooks are the events for the backend. Both programs read them: brokers record what has
// changed, and janitors send the events.
type Webhooks struct {
	URL         Secret        `setting:"webhooks.url" unset:"default none: no events" help:"https URL (http on the loopback address) that receives the events; brokers and\njanitors need it"`
	Secrets     []Secret      `setting:"webhooks.secrets" unset:"required on janitors" help:"secrets of at least 16 bytes; every delivery has a signature with each, which allows rotation"`
	SecretsFile string        `setting:"webhooks.secrets_file" help:"a file with one per line instead; # begins a comment"`
	Events      []string      `setting:"webhooks.events" choices:"user_online,user_offline,channel_occupied,channel_vacated,message_undelivered,fields_gone,hold_expired,room_ended" unset:"default all" help:"kinds of events: user_online, user_offline, channel_occupied, channel_vacated,\nmessage_undelivered, fields_gone, hold_expired, room_ended; the same on brokers\nand janitors"`
	Batch       int           `setting:"webhooks.batch" default:"100" help:"maximum number of events in one delivery"`
	Timeout     time.Duration `setting:"webhooks.timeout" default:"10s" help:"deadline of one delivery"`
	MaxAge      time.Duration `setting:"webhooks.max_age" default:"24h" help:"how long an event is retried before it becomes a dead letter"`
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
func (w Webhooks) Kinds() (wanted []events.Kind) {
	for _, name := range w.Events {
		wanted = append(wanted, events.Kind(name))
	}
	return wanted
}

// Sender returns the options of the sender. It reads the secrets file.
func (w Webhooks) Sender() (webhook.Options, error) {
	secrets, err := secretsOf("webhooks.secrets", w.Secrets, w.SecretsFile, backend.CheckSecret)
	return webhook.Options{URL: string(w.URL), Secrets: secrets, Timeout: w.Timeout}, err
}

// Dispatcher returns the options of the dispatcher, without the store, the truth, the sender, the
// logger and the metrics.
func (w Webhooks) Dispatcher() events.Options {
	return events.Options{Wanted: w.Kinds(), Batch: w.Batch, MaxAge: w.MaxAge}
}

// EventStore returns the options of the broker's event store.
func (b Broker) EventStore() events.StoreOptions { return events.StoreOptions{Prefix: b.Prefix} }

// EventStore returns the options of the janitor's event store.
func (j Janitor) EventStore() events.StoreOptions { return events.StoreOptions{Prefix: j.Prefix} }
