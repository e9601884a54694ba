package setup

import (
	"context"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"switchboard/broker/delivery"
	"switchboard/configs"
	"switchboard/events"
	"switchboard/events/noting"
	"switchboard/events/truth"
	"switchboard/queue"
	"switchboard/registry"
	"switchboard/webhook"
)

// Noting is r, which notes its changes in store where the settings name an endpoint.
func Noting(settings configs.Webhooks, store events.Store, r registry.Registry, log zerolog.Logger) registry.Registry {
	if !settings.Enabled() {
		return r
	}
	return noting.New(r, events.NewRecorder(store, settings.Kinds()), log)
}

// Watch notes in store what pushes with notify_after ask for. It is nil where nobody would be told:
// without an endpoint, or when such events are not wanted.
func Watch(settings configs.Webhooks, store events.Store) func(context.Context, delivery.AckDeadline) error {
	wanted := settings.Kinds()
	if !settings.Enabled() || wanted != nil && !slices.Contains(wanted, events.MessageUndelivered) {
		return nil
	}
	recorder := events.NewRecorder(store, wanted)
	return func(ctx context.Context, w delivery.AckDeadline) error {
		d := events.Delivery{User: w.User, Data: w.Data, Key: w.Key, After: w.After}
		for _, c := range w.Clients {
			d.Clients = append(d.Clients, events.Place{Client: c.Client, ID: c.ID})
		}
		return recorder.WatchDelivery(ctx, d)
	}
}

// Events makes and sends what store has, by what r and q say. It is nil when the settings name no
// endpoint; close ends its connections.
func Events(
	settings configs.Webhooks, store events.Store, r registry.Registry, q queue.Queue,
	log zerolog.Logger, metrics prometheus.Registerer,
) (d *events.Dispatcher, end func(), err error) {
	if !settings.Enabled() {
		return nil, func() {}, nil
	}
	to, err := settings.Sender()
	if err != nil {
		return nil, nil, err
	}
	to.Agent = "switchboard/" + Version()
	sender, err := webhook.New(to)
	if err != nil {
		return nil, nil, err
	}
	opts := settings.Dispatcher()
	opts.Store, opts.Truth, opts.Sender = store, truth.New(r, q), sender
	opts.Logger, opts.Registerer = log, metrics
	if d, err = events.NewDispatcher(opts); err != nil {
		return nil, nil, err
	}
	return d, sender.Close, nil
}
