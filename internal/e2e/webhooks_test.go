//go:build long

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"switchboard/internal/await"
	"switchboard/internal/keytable"
	"switchboard/internal/redistest"
	"switchboard/internal/signedreq"
	"switchboard/internal/testbed"
)

const webhookSecret = "the webhooks are signed"

// A webhookReceiver is the endpoint of a backend. It verifies deliveries, drops repeated events,
// and keeps the types of the events of each user and channel in order.
type webhookReceiver struct {
	url string

	mu     sync.Mutex // guards the fields below
	ids    map[string]bool
	events map[string][]string
}

func startReceiver(t *testing.T) *webhookReceiver {
	receiver := &webhookReceiver{ids: map[string]bool{}, events: map[string][]string{}}
	receiver.url = startBackend(t, func(r *http.Request) error {
		var delivery struct {
			Events []struct{ ID, Type, User, Channel string }
		}
		if err := signedreq.Decode(r, webhookSecret, &delivery); err != nil {
			return err
		}
		receiver.mu.Lock()
		defer receiver.mu.Unlock()
		for _, e := range delivery.Events {
			if !receiver.ids[e.ID] {
				receiver.ids[e.ID] = true
				receiver.events[e.User+e.Channel] = append(receiver.events[e.User+e.Channel], e.Type)
			}
		}
		return nil
	})
	return receiver
}

// waitEvents waits until the events of a user or channel are exactly these.
func (r *webhookReceiver) waitEvents(ctx context.Context, t *testing.T, of string, want ...string) {
	t.Helper()
	await.NoError(ctx, t, "events of "+of, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if got := r.events[of]; !slices.Equal(got, want) {
			return fmt.Errorf("got %v, want %v", got, want)
		}
		return nil
	})
}

// TestPresenceWebhooksWhenBrokerAndJanitorAreKilled connects users to two brokers and kills one of
// them. It also kills the janitor before it can send the events. Each event must arrive once.
func TestPresenceWebhooksWhenBrokerAndJanitorAreKilled(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	receiver := startReceiver(t)
	server := redistest.Start(t)
	webhooks := []string{"SWITCHBOARD_WEBHOOKS_URL=" + receiver.url, "SWITCHBOARD_WEBHOOKS_SECRETS=" + webhookSecret, "SWITCHBOARD_WEBHOOKS_TIMEOUT=1s"}
	var brokers [2]*testbed.Broker
	for i := range brokers {
		brokers[i] = startBroker(t, fmt.Sprint("b", i), server.URL(), webhooks)
	}
	janitor := startJanitor(t, server.URL(), webhooks, "--servers-every", "300ms")

	connectDevice(ctx, t, brokers[0], "moving", "m1", "of-moving")
	connectDevice(ctx, t, brokers[0], "twofold", "t1", "of-twofold")
	connectDevice(ctx, t, brokers[1], "twofold", "t2", "of-twofold")
	connectDevice(ctx, t, brokers[0], "lost", "l1", "of-lost")
	leaving := connectDevice(ctx, t, brokers[1], "leaving", "v1", "of-leaving")
	for _, user := range []string{"moving", "twofold", "lost", "leaving"} {
		receiver.waitEvents(ctx, t, user, "user_online")
		receiver.waitEvents(ctx, t, "of-"+user, "channel_occupied")
	}
	connectDevice(ctx, t, brokers[1], "moving", "m1", "of-moving") // takes the client over
	leaving.Close()
	receiver.waitEvents(ctx, t, "leaving", "user_online", "user_offline")
	receiver.waitEvents(ctx, t, "of-leaving", "channel_occupied", "channel_vacated")

	end(ctx, t, brokers[0], syscall.SIGKILL)
	await.NoError(ctx, t, "the janitor has cleaned up after the killed broker", func() error {
		if n := server.Client(t).Exists(ctx, "s_dead_{"+brokers[0].ID+"}").Val(); n != 1 {
			return fmt.Errorf("the key is missing")
		}
		return nil
	})
	end(ctx, t, janitor, syscall.SIGKILL) // within the grace period of the events
	startJanitor(t, server.URL(), webhooks, "--servers-every", "300ms")
	receiver.waitEvents(ctx, t, "lost", "user_online", "user_offline")
	receiver.waitEvents(ctx, t, "of-lost", "channel_occupied", "channel_vacated")

	end(ctx, t, brokers[1], syscall.SIGTERM)
	for _, user := range []string{"moving", "twofold", "lost", "leaving"} {
		receiver.waitEvents(ctx, t, user, "user_online", "user_offline")
		receiver.waitEvents(ctx, t, "of-"+user, "channel_occupied", "channel_vacated")
	}
	if _, err := keytable.Check(ctx, server.Client(t)); err != nil {
		t.Error(err)
	}
}

// TestUndeliveredWebhooks checks that the backend receives an event for each message that no device
// of its user has acknowledged. With "first", the acknowledgement of one device withdraws the
// message from the other devices and prevents the event.
func TestUndeliveredWebhooks(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	receiver := startReceiver(t)
	server := redistest.Start(t)
	webhooks := []string{
		"SWITCHBOARD_WEBHOOKS_URL=" + receiver.url, "SWITCHBOARD_WEBHOOKS_SECRETS=" + webhookSecret, "SWITCHBOARD_WEBHOOKS_EVENTS=message_undelivered",
	}
	b := startBroker(t, "broker", server.URL(), webhooks)
	phone := connectDevice(ctx, t, b, "quick", "phone", "of-quick")
	connectDevice(ctx, t, b, "quick", "tablet", "of-quick")
	connectDevice(ctx, t, b, "slow", "laptop", "of-slow")

	push := func(body string) (clients map[string]int64) {
		t.Helper()
		var answer struct {
			Results []struct {
				Clients []struct {
					Client string
					ID     int64
				}
			}
		}
		if err := b.Call(ctx, http.MethodPost, "/v1/push", body, &answer); err != nil {
			t.Fatal(err)
		}
		clients = map[string]int64{}
		for _, c := range answer.Results[0].Clients {
			clients[c.Client] = c.ID
		}
		return clients
	}
	quick := push(`{"user":"quick","data":"ring","first":true,"notify_after":2}`)
	for received := ""; !strings.Contains(received, `"ring"`); { // the broker ignores an ack for an unsent message
		message, err := phone.Receive(ctx)
		if err != nil {
			t.Fatal(err)
		}
		received = string(message)
	}
	if err := phone.Send(ctx, fmt.Sprintf(`{"type":"ack","id":%d}`, quick["quick/phone"])); err != nil {
		t.Fatal(err)
	}
	push(`{"user":"slow","data":"ring","first":true,"notify_after":2}`)
	push(`{"user":"nobody","data":"ring","notify_after":2}`)
	await.NoError(ctx, t, "the message is withdrawn from the tablet", func() error {
		if n := server.Client(t).LLen(ctx, "mq_c_{quick/tablet}").Val(); n != 0 {
			return fmt.Errorf("%d are waiting", n)
		}
		return nil
	})
	end(ctx, t, b, syscall.SIGKILL) // the janitor must send the events
	startJanitor(t, server.URL(), webhooks, "--servers-every", "300ms")
	receiver.waitEvents(ctx, t, "slow", "message_undelivered")
	receiver.waitEvents(ctx, t, "nobody", "message_undelivered")
	await.NoError(ctx, t, "no event is due", func() error {
		for shard := range 16 {
			if n := server.Client(t).ZCard(ctx, fmt.Sprintf("ev_due_{ev%d}", shard)).Val(); n != 0 {
				return fmt.Errorf("%d are due in shard %d", n, shard)
			}
		}
		return nil
	})
	receiver.waitEvents(ctx, t, "quick")
	if _, err := keytable.Check(ctx, server.Client(t)); err != nil {
		t.Error(err)
	}
}

// startBackend starts an HTTP server that hands each POST to receive. It returns the server's URL.
func startBackend(t *testing.T, receive func(*http.Request) error) string {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if err := receive(r); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}
