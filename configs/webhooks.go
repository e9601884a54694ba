package configs

import (
	"errors"
	"time"

	"switchboard/events"
	"switchboard/internal/backend"
	"switchboard/webhook"
)

// Webhooks are where and how the backend is told what happens. Both programs read them: brokers note what there is to
// tell, janitors tell it.
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

// kinds are the names that events may have.
func kinds() []string {
	names := make([]string, len(events.Kinds))
	for i, k := range events.Kinds {
		names[i] = string(k)
	}
	return names
}

var webhookGroup = group{"Events for the backend", []about{
	{key: "webhooks.url", text: "where events are posted, https (http on the loopback address); brokers and janitors need it", unset: "default none: nothing is told"},
	{key: "webhooks.secrets", text: "each signs every delivery, 16 bytes at least; several allow rotation", unset: "required where events are sent from"},
	{key: "webhooks.secrets_file", text: "a file with one per line instead; # begins a comment"},
	{key: "webhooks.events", choices: kinds(), unset: "default all",
		text: "which: user_online, user_offline, channel_occupied, channel_vacated,\nmessage_undelivered; the same at brokers and janitors"},
	{key: "webhooks.batch", text: "the most events in one delivery"},
	{key: "webhooks.timeout", text: "how long a delivery may take"},
	{key: "webhooks.max_age", text: "how long an event is tried, before it is put to the dead letters"},
}}

func (w Webhooks) validate() error {
	if len(w.Secrets) > 0 && w.SecretsFile != "" {
		return errors.New("webhooks.secrets and webhooks.secrets_file: both are given, keep one")
	}
	return nil
}

// Enabled says whether anything is told at all.
func (w Webhooks) Enabled() bool { return w.URL != "" }

// Kinds are the events that are wanted, nil for all.
func (w Webhooks) Kinds() (wanted []events.Kind) {
	for _, name := range w.Events {
		wanted = append(wanted, events.Kind(name))
	}
	return wanted
}

// Sender are the options of who sends. It reads the file that the settings name.
func (w Webhooks) Sender() (webhook.Options, error) {
	secrets, err := secretsOf("webhooks.secrets", w.Secrets, w.SecretsFile, backend.CheckSecret)
	return webhook.Options{URL: string(w.URL), Secrets: secrets, Timeout: w.Timeout}, err
}

// Dispatcher are the options of who makes events, without the store, the truth, the sender, the logger and the metrics.
func (w Webhooks) Dispatcher() events.Options {
	return events.Options{Wanted: w.Kinds(), Batch: w.Batch, MaxAge: w.MaxAge}
}

// EventStore are the options of the broker's store of events.
func (b Broker) EventStore() events.StoreOptions { return events.StoreOptions{Prefix: b.Prefix} }

// EventStore are the options of the janitor's store of events.
func (j Janitor) EventStore() events.StoreOptions { return events.StoreOptions{Prefix: j.Prefix} }
