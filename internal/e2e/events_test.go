package e2e

import (
	"context"
	"encoding/json"
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
)

const hookSecret = "the webhooks are signed"

// mailbox is the endpoint of a backend. It verifies, drops repeats, and keeps what is told of each user and channel, in order.
type mailbox struct {
	url string

	mu   sync.Mutex // guards the fields below
	ids  map[string]bool
	told map[string][]string
}

func openMailbox(t *testing.T) *mailbox {
	m := &mailbox{ids: map[string]bool{}, told: map[string][]string{}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var delivery struct {
			Events []struct{ ID, Type, User, Channel string }
		}
		if err := signedreq.Decode(r, hookSecret, &delivery); err != nil {
			t.Error(err)
			return
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, e := range delivery.Events {
			if !m.ids[e.ID] {
				m.ids[e.ID] = true
				m.told[e.User+e.Channel] = append(m.told[e.User+e.Channel], e.Type)
			}
		}
	}))
	t.Cleanup(s.Close)
	m.url = s.URL
	return m
}

// want waits until this, and no more, is told of somebody.
func (m *mailbox) want(ctx context.Context, t *testing.T, of string, want ...string) {
	t.Helper()
	await.NoError(ctx, t, "what is told of "+of, func() error {
		m.mu.Lock()
		defer m.mu.Unlock()
		if got := m.told[of]; !slices.Equal(got, want) {
			return fmt.Errorf("got %v, want %v", got, want)
		}
		return nil
	})
}

// TestTheBackendHearsOnceWhoCameAndWentAlthoughABrokerAndAJanitorAreKilled has users on two brokers and kills one of them,
// and the janitor before it can say so.
func TestTheBackendHearsOnceWhoCameAndWentAlthoughABrokerAndAJanitorAreKilled(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), tooLong)
	defer cancel()
	m := openMailbox(t)
	server := redistest.Start(t)
	hooked := func(name string, args ...string) *process {
		cmd := command(name, append(args, "--redis", server.URL(), "--log-format", "json")...)
		cmd.Env = append(cmd.Env, "SWITCHBOARD_WEBHOOKS_URL="+m.url, "SWITCHBOARD_WEBHOOKS_SECRETS="+hookSecret, "SWITCHBOARD_WEBHOOKS_TIMEOUT=1s")
		return start(t, name, cmd, nil)
	}
	var brokers [2]*instance
	for i := range brokers {
		b := &instance{process: hooked("broker", "--name", fmt.Sprint("b", i), "--http", "127.0.0.1:0", "--tcp", "127.0.0.1:0")}
		b.tcp = b.logged(ctx, t, "listening", "tcp")
		b.id = b.logged(ctx, t, "joined", "server")
		brokers[i] = b
	}
	janitor := hooked("janitor", "--servers-every", "300ms")

	connectDevice(ctx, t, brokers[0], "moving", "m1", "of-moving")
	connectDevice(ctx, t, brokers[0], "twofold", "t1", "of-twofold")
	connectDevice(ctx, t, brokers[1], "twofold", "t2", "of-twofold")
	connectDevice(ctx, t, brokers[0], "lost", "l1", "of-lost")
	leaving := connectDevice(ctx, t, brokers[1], "leaving", "v1", "of-leaving")
	for _, user := range []string{"moving", "twofold", "lost", "leaving"} {
		m.want(ctx, t, user, "user_online")
		m.want(ctx, t, "of-"+user, "channel_occupied")
	}
	connectDevice(ctx, t, brokers[1], "moving", "m1", "of-moving") // takes the client over
	leaving.Close()
	m.want(ctx, t, "leaving", "user_online", "user_offline")
	m.want(ctx, t, "of-leaving", "channel_occupied", "channel_vacated")

	brokers[0].end(ctx, t, syscall.SIGKILL)
	await.NoError(ctx, t, "the killed broker is buried", func() error {
		if n := server.Client(t).Exists(ctx, "s_dead_{"+brokers[0].id+"}").Val(); n != 1 {
			return fmt.Errorf("it is not")
		}
		return nil
	})
	janitor.end(ctx, t, syscall.SIGKILL) // within the grace
	hooked("janitor", "--servers-every", "300ms")
	m.want(ctx, t, "lost", "user_online", "user_offline")
	m.want(ctx, t, "of-lost", "channel_occupied", "channel_vacated")

	brokers[1].end(ctx, t, syscall.SIGTERM)
	for _, user := range []string{"moving", "twofold", "lost", "leaving"} {
		m.want(ctx, t, user, "user_online", "user_offline")
		m.want(ctx, t, "of-"+user, "channel_occupied", "channel_vacated")
	}
	if _, err := keytable.Check(ctx, server.Client(t)); err != nil {
		t.Error(err)
	}
}

// TestTheBackendHearsOfWhatNobodyAcknowledged: of what the first device has taken from the others, nothing is told.
func TestTheBackendHearsOfWhatNobodyAcknowledged(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), tooLong)
	defer cancel()
	m := openMailbox(t)
	server := redistest.Start(t)
	hooked := func(name string, args ...string) *process {
		cmd := command(name, append(args, "--redis", server.URL(), "--log-format", "json")...)
		cmd.Env = append(cmd.Env, "SWITCHBOARD_WEBHOOKS_URL="+m.url, "SWITCHBOARD_WEBHOOKS_SECRETS="+hookSecret,
			"SWITCHBOARD_WEBHOOKS_EVENTS=message_undelivered")
		return start(t, name, cmd, nil)
	}
	b := &instance{process: hooked("broker", "--http", "127.0.0.1:0", "--tcp", "127.0.0.1:0")}
	b.http, b.tcp = b.logged(ctx, t, "listening", "http"), b.logged(ctx, t, "listening", "tcp")
	b.id = b.logged(ctx, t, "joined", "server")
	phone := connectDevice(ctx, t, b, "quick", "phone", "of-quick")
	connectDevice(ctx, t, b, "quick", "tablet", "of-quick")
	connectDevice(ctx, t, b, "slow", "laptop", "of-slow")

	push := func(body string) (clients map[string]int64) {
		t.Helper()
		resp, err := http.Post("http://"+b.http+"/v1/push", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var answer struct {
			Results []struct {
				Clients []struct {
					Client string
					ID     int64
				}
			}
		}
		if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("push %s: %d %v", body, resp.StatusCode, err)
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
	b.end(ctx, t, syscall.SIGKILL) // it is the janitor's to say
	hooked("janitor", "--servers-every", "300ms")
	m.want(ctx, t, "slow", "message_undelivered")
	m.want(ctx, t, "nobody", "message_undelivered")
	await.NoError(ctx, t, "all was looked at", func() error {
		for shard := range 16 {
			if n := server.Client(t).ZCard(ctx, fmt.Sprintf("ev_due_{ev%d}", shard)).Val(); n != 0 {
				return fmt.Errorf("%d are due in shard %d", n, shard)
			}
		}
		return nil
	})
	m.want(ctx, t, "quick")
	if _, err := keytable.Check(ctx, server.Client(t)); err != nil {
		t.Error(err)
	}
}
