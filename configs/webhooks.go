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
	URL         Secret        `setting:"url"` // it may hold a token
	Secrets     []Secret      `setting:"secrets"`
	SecretsFile string        `setting:"secrets_file"`
	Events      []string      `setting:"events"`
	Batch       int           `setting:"batch"`
	Timeout     time.Duration `setting:"timeout"`
	MaxAge      time.Duration `setting:"max_age"`
}

func defaultWebhooks() Webhooks {
	return Webhooks{Batch: 100, Timeout: 10 * time.Second, MaxAge: 24 * time.Hour}
}

// kinds returns the names of all kinds of events.
func kinds() []string {
	names := make([]string, len(events.Kinds))
	for i, k := range events.Kinds {
		names[i] = string(k)
	}
	return names
}

var webhookGroup = group{"Events for the backend", []spec{
	{key: "webhooks.url", text: "https URL (http on the loopback address) that receives the events; brokers and\njanitors need it", unset: "default none: no events"},
	{key: "webhooks.secrets", text: "secrets of at least 16 bytes; every delivery has a signature with each, which allows\nrotation", unset: "required on janitors"},
	{key: "webhooks.secrets_file", text: "a file with one per line instead; # begins a comment"},
	{key: "webhooks.events", choices: kinds(), unset: "default all",
		text: "kinds of events: user_online, user_offline, channel_occupied, channel_vacated,\nmessage_undelivered, fields_gone, hold_expired, room_ended; the same on brokers\nand janitors"},
	{key: "webhooks.batch", text: "maximum number of events in one delivery"},
	{key: "webhooks.timeout", text: "deadline of one delivery"},
	{key: "webhooks.max_age", text: "how long an event is retried before it becomes a dead letter"},
}}

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
