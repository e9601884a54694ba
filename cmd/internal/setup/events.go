package setup

import (
	"context"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"switchboard/broker"
	"switchboard/broker/api"
	"switchboard/broker/delivery"
	"switchboard/configs"
	"switchboard/events"
	"switchboard/events/inspect"
	"switchboard/events/recording"
	"switchboard/events/truth"
	"switchboard/janitor"
	"switchboard/kit/hold"
	"switchboard/webhook"
)

// Registry holds the methods of a registry that a broker and a janitor call.
type Registry interface {
	broker.Registry
	janitor.Registry
}

// recorded is a registry whose changes are recorded. The methods of Wrapper hide those of the
// registry, which is embedded one level deeper.
type recorded struct {
	*recording.Wrapper
	plain
}

// plain embeds a registry, so that recorded has its methods one level deeper than those of Wrapper.
type plain struct{ Registry }

// RecordChanges wraps r so that it records its changes in store. Without webhooks it returns r.
func RecordChanges(settings configs.Webhooks, store events.Store, r Registry, log zerolog.Logger) Registry {
	if !settings.Enabled() {
		return r
	}
	return recorded{recording.Wrap(r, events.NewRecorder(store, settings.Kinds()), log), plain{r}}
}

// SetAckDeadline returns a function that records a push with notify_after in store. It returns nil
// without webhooks, or if events of this kind are not wanted.
func SetAckDeadline(settings configs.Webhooks, store events.Store) func(context.Context, delivery.AckDeadline) error {
	wanted := settings.Kinds()
	if !settings.Enabled() || wanted != nil && !slices.Contains(wanted, events.MessageUndelivered) {
		return nil
	}
	recorder := events.NewRecorder(store, wanted)
	return func(ctx context.Context, deadline delivery.AckDeadline) error {
		d := events.AckDeadline{User: deadline.User, Data: deadline.Data, Key: deadline.Key, After: deadline.After}
		for _, c := range deadline.Clients {
			d.Clients = append(d.Clients, events.ClientMessage{Client: c.Client, ID: c.ID})
		}
		return recorder.SetAckDeadline(ctx, d)
	}
}

// Recorder returns what records events of other packages in store. It returns nil without webhooks.
func Recorder(settings configs.Webhooks, store events.Store) *events.Recorder {
	if !settings.Enabled() {
		return nil
	}
	return events.NewRecorder(store, settings.Kinds())
}

// Webhooks returns what operators see of the events in store. It returns nil without webhooks.
func Webhooks(settings configs.Webhooks, store events.Store) api.Webhooks {
	if !settings.Enabled() {
		return nil
	}
	return inspect.New(store, string(settings.URL), settings.Kinds())
}

// FieldEnds returns a recorder of the fields that end, in store. It returns nil without webhooks,
// or if events of this kind are not wanted. epoch changes when the store may have lost its last
// writes.
func FieldEnds(settings configs.Webhooks, store events.Store, epoch func() uint64, log zerolog.Logger) delivery.FieldEnds {
	wanted := settings.Kinds()
	if !settings.Enabled() || wanted != nil && !slices.Contains(wanted, events.FieldsGone) && !slices.Contains(wanted, events.HoldExpired) {
		return nil
	}
	return recording.NewFields(events.NewRecorder(store, wanted), epoch, log)
}

// NewDispatcher returns a dispatcher that makes events from the records in store and the state in r
// and q, and sends them. It returns nil without webhooks. closeSender closes the connections to the
// endpoint.
func NewDispatcher(
	settings configs.Webhooks, store events.Store, r truth.Registry, q truth.Queue,
	log zerolog.Logger, metrics prometheus.Registerer,
) (d *events.Dispatcher, closeSender func(), err error) {
	if !settings.Enabled() {
		return nil, func() {}, nil
	}
	senderOpts, err := settings.Sender()
	if err != nil {
		return nil, nil, err
	}
	senderOpts.Agent = "switchboard/" + Version()
	sender, err := webhook.New(senderOpts)
	if err != nil {
		return nil, nil, err
	}
	opts := settings.Dispatcher()
	opts.Store, opts.Truth, opts.Sender = store, truth.New(r, q), sender
	opts.Translate = hold.Events(q)
	opts.Logger, opts.Registerer = log, metrics
	if d, err = events.NewDispatcher(opts); err != nil {
		return nil, nil, err
	}
	return d, sender.Close, nil
}
