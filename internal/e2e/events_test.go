package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"switchboard/internal/keytable"
	"switchboard/internal/redistest"
	"switchboard/webhook"
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
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = webhook.Verify([]string{hookSecret}, r.Header, body, 0)
		}
		var delivery struct {
			Events []struct{ ID, Type, User, Channel string }
		}
		if err == nil {
			err = json.Unmarshal(body, &delivery)
		}
		if err != nil {
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
	eventually(ctx, t, "what is told of "+of, func() error {
		m.mu.Lock()
		defer m.mu.Unlock()
		if got := m.told[of]; !slices.Equal(got, want) {
			return fmt.Errorf("got %v, want %v", got, want)
		}
		return nil
	})
}

// device connects a client, which subscribes to the channel of its user.
func device(ctx context.Context, t *testing.T, b *instance, user, client string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", b.tcp)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	fmt.Fprintf(conn, `{"type":"connect","client":%q,"user":%q}`+"\n", client, user)
	fmt.Fprintf(conn, `{"type":"subscribe","channel":"of-%s"}`+"\n", user)
	lines := bufio.NewScanner(conn)
	for _, want := range []string{"connected", "subscribed"} {
		var answer struct{ Type string }
		if !lines.Scan() || json.Unmarshal(lines.Bytes(), &answer) != nil || answer.Type != want {
			t.Fatalf("%s was told %q (%v), want %s", client, lines.Bytes(), lines.Err(), want)
		}
	}
	return conn
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

	device(ctx, t, brokers[0], "moving", "m1")
	device(ctx, t, brokers[0], "twofold", "t1")
	device(ctx, t, brokers[1], "twofold", "t2")
	device(ctx, t, brokers[0], "lost", "l1")
	leaving := device(ctx, t, brokers[1], "leaving", "v1")
	for _, user := range []string{"moving", "twofold", "lost", "leaving"} {
		m.want(ctx, t, user, "user_online")
		m.want(ctx, t, "of-"+user, "channel_occupied")
	}
	device(ctx, t, brokers[1], "moving", "m1") // takes the client over
	_ = leaving.Close()
	m.want(ctx, t, "leaving", "user_online", "user_offline")
	m.want(ctx, t, "of-leaving", "channel_occupied", "channel_vacated")

	brokers[0].end(ctx, t, syscall.SIGKILL)
	eventually(ctx, t, "the killed broker is buried", func() error {
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
	phone := device(ctx, t, b, "quick", "phone")
	device(ctx, t, b, "quick", "tablet")
	device(ctx, t, b, "slow", "laptop")

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
	lines := bufio.NewScanner(phone)
	for lines.Scan() && !strings.Contains(lines.Text(), `"ring"`) { // what was not sent is not acknowledged
	}
	fmt.Fprintf(phone, `{"type":"ack","id":%d}`+"\n", quick["quick/phone"])
	push(`{"user":"slow","data":"ring","first":true,"notify_after":2}`)
	push(`{"user":"nobody","data":"ring","notify_after":2}`)
	eventually(ctx, t, "the message is withdrawn from the tablet", func() error {
		if n := server.Client(t).LLen(ctx, "mq_c_{quick/tablet}").Val(); n != 0 {
			return fmt.Errorf("%d are waiting", n)
		}
		return nil
	})
	b.end(ctx, t, syscall.SIGKILL) // it is the janitor's to say
	hooked("janitor", "--servers-every", "300ms")
	m.want(ctx, t, "slow", "message_undelivered")
	m.want(ctx, t, "nobody", "message_undelivered")
	eventually(ctx, t, "all was looked at", func() error {
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
