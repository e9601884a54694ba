package hold_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"switchboard/broker"
	"switchboard/broker/extension"
	"switchboard/events"
	"switchboard/events/recording"
	"switchboard/events/truth"
	"switchboard/internal/await"
	"switchboard/kit/hold"
	"switchboard/kit/kittest"
)

// endpoint is a backend that receives events.
type endpoint struct{ received chan hold.ExpiredEvent }

// Send implements events.Sender.
func (e endpoint) Send(_ context.Context, list [][]byte) error {
	for _, text := range list {
		var event hold.ExpiredEvent
		if err := json.Unmarshal(text, &event); err != nil {
			return err
		}
		e.received <- event
	}
	return nil
}

// Timeout implements events.Sender.
func (endpoint) Timeout() time.Duration { return testTimeout }

// TestWebhook checks that the backend receives the end of a hold without subscribers.
func TestWebhook(t *testing.T) {
	var holds []*hold.Holds
	var dispatchers []*events.Dispatcher
	backend := endpoint{make(chan hold.ExpiredEvent, 10)}
	kittest.Each(t, 1, func(o *broker.Options) {
		store := events.NewMemory(events.StoreOptions{})
		o.Store.FieldEnds = recording.NewFields(events.NewRecorder(store, []events.Kind{events.HoldExpired}), func() uint64 { return 1 }, zerolog.Nop())
		d, err := events.NewDispatcher(events.Options{
			Store: store, Truth: truth.New(o.Store.Registry.(truth.Registry), o.Store.Queue.(truth.Queue)), Sender: backend,
			Translate: hold.Events(o.Store.Queue), Wanted: []events.Kind{events.HoldExpired},
		})
		ok(t, err)
		dispatchers = append(dispatchers, d)
		o.Extensions = append(o.Extensions, func(host *extension.Host) (extension.Extension, error) {
			h, err := hold.New(host, hold.Options{})
			if err != nil {
				return extension.Extension{}, err
			}
			holds = append(holds, h)
			return h.Extension(), nil
		})
	}, func(t *testing.T, _ *kittest.Brokers) {
		h, d := holds[len(holds)-1], dispatchers[len(dispatchers)-1]
		_, err := h.Put(t.Context(), show, hold.PutRequest{Resource: hold.Resource{Capacity: 5, HoldMS: 50}})
		ok(t, err)
		made, err := h.Hold(t.Context(), show, hold.TakeRequest{User: "bob", Count: 2})
		ok(t, err)
		await.True(t, "the event has arrived", func() bool {
			_, err := d.DueRound(t.Context())
			ok(t, err)
			_, err = d.SendRound(t.Context())
			ok(t, err)
			return len(backend.received) > 0
		})
		equal(t, "event", <-backend.received, hold.ExpiredEvent{
			Type: events.HoldExpired, Resource: show, Hold: made.ID, User: "bob", Seats: made.Seats,
		})
	})
}
