package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"switchboard/events"
	"switchboard/internal/redispipe"
	"switchboard/internal/redistest"
	"switchboard/internal/signedreq"
	"switchboard/internal/testbed"
	"switchboard/registry"
)

// event is an event as a backend decodes it.
type event struct {
	ID, Type, User string
	Data           int
}

// delivery is a delivery that waits for the answer of the backend.
type delivery struct {
	events []event
	answer chan<- int // the status
}

// backend starts a backend. The test receives its deliveries and answers each.
func backend(t *testing.T) (url string, deliveries <-chan delivery) {
	t.Helper()
	received := make(chan delivery)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var d struct{ Events []event }
		if err := signedreq.Decode(r, signing, &d); err != nil {
			t.Error(err)
			return
		}
		answer := make(chan int, 1)
		select {
		case received <- delivery{d.Events, answer}:
		case <-t.Context().Done():
			return
		}
		select {
		case status := <-answer:
			w.WriteHeader(status)
		case <-r.Context().Done(): // the janitor was killed
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, received
}

// next waits for a delivery.
func next(t *testing.T, deliveries <-chan delivery) delivery {
	t.Helper()
	select {
	case d := <-deliveries:
		return d
	case <-time.After(time.Minute):
		t.Fatal("no delivery arrived")
		return delivery{}
	}
}

// brokers simulates brokers: it writes their changes into Redis, so that there are events.
type brokers struct {
	*testing.T
	*events.Recorder
	registry *registry.Redis
}

func startBrokers(t *testing.T, server *redistest.Server) *brokers {
	t.Helper()
	pipe := redispipe.New(server.Client(t), redispipe.Options{})
	b := &brokers{
		t, events.NewRecorder(events.NewRedis(pipe, events.StoreOptions{Prefix: "t:"}), nil),
		registry.NewRedis(pipe, registry.Options{Prefix: "t:", Lease: time.Hour}),
	}
	b.ok(b.registry.Join(t.Context(), registry.Server{ID: "a", Host: "a:1"}))
	return b
}

func (b *brokers) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// connect binds a client of the user.
func (b *brokers) connect(user string) {
	b.Helper()
	b.ok(b.registry.BindUsers(b.Context(), []registry.UserBinding{{User: user, Binding: registry.Binding{Client: user + "-phone", Server: "a", Generation: 1}}})[0])
	b.ok(b.UsersChanged(b.Context(), user)[0])
}

func (b *brokers) disconnect(user string) {
	b.Helper()
	_, err := b.registry.ReleaseUser(b.Context(), user, user+"-phone", 1)
	b.ok(err)
	b.ok(b.UsersChanged(b.Context(), user)[0])
}

// environ returns the environment of a janitor that sends events to url.
func environ(server *redistest.Server, url string) []string {
	return []string{
		"SWITCHBOARD_REDIS=" + server.URL(), "SWITCHBOARD_PREFIX=t:",
		"SWITCHBOARD_WEBHOOKS_URL=" + url + "/?token=" + secret, "SWITCHBOARD_WEBHOOKS_SECRETS=" + signing,
		"SWITCHBOARD_WEBHOOKS_TIMEOUT=1s",
	}
}

// TestKilledDuringDelivery: the next janitor sends the events of the delivery again, with the same
// ids and in the same order.
func TestKilledDuringDelivery(t *testing.T) {
	server := redistest.Start(t)
	url, deliveries := backend(t)
	b := startBrokers(t, server)
	first := testbed.RunCommand(t, append(environ(server, url), "SWITCHBOARD_WEBHOOKS_TIMEOUT=1m"), binary)
	first.Await("Redis answers")
	b.connect("ann")
	lost := next(t, deliveries)
	if len(lost.events) != 1 || lost.events[0].Type != "user_online" || lost.events[0].User != "ann" {
		t.Fatalf("delivered %+v", lost.events)
	}
	b.disconnect("ann")
	first.Interrupt(syscall.SIGKILL)
	first.ExitCode()
	// End the lease of the killed janitor, which would last 65 s.
	client := server.Client(t)
	keys, err := client.Keys(t.Context(), "t:ev_m_*").Result()
	b.ok(err)
	for _, key := range keys {
		b.ok(client.HSet(t.Context(), key, "until", 0).Err())
	}

	second := testbed.RunCommand(t, environ(server, url), binary)
	again := next(t, deliveries)
	if again.events[0] != lost.events[0] {
		t.Errorf("delivered %+v, want %+v again", again.events, lost.events)
	}
	again.answer <- http.StatusOK
	if len(again.events) == 1 { // on a slow machine the grace period has ended already, and both events come at once
		again = next(t, deliveries)
		again.answer <- http.StatusOK
	}
	if last := again.events[len(again.events)-1]; last.Type != "user_offline" || last.User != "ann" || last.ID == lost.events[0].ID {
		t.Errorf("then %+v", last)
	}
	second.Interrupt(syscall.SIGTERM)
	if code := second.ExitCode(); code != 0 {
		t.Errorf("the exit code is %d", code)
	}
	if log := first.Tail(0) + second.Tail(0); strings.Contains(log, secret) {
		t.Errorf("a secret is in the log:\n%s", log)
	}
}

// TestAbandonedClaim: the next janitor handles records that another one claimed but did not settle.
func TestAbandonedClaim(t *testing.T) {
	server := redistest.Start(t)
	url, deliveries := backend(t)
	b := startBrokers(t, server)
	client := server.Client(t)
	b.connect("ann")
	claimed, err := events.NewRedis(redispipe.New(client, redispipe.Options{}), events.StoreOptions{Prefix: "t:"}).
		Claim(t.Context(), shardOfAnn(t, client.Keys(t.Context(), "t:ev_due_*").Val()), 10, 2*time.Second)
	if err != nil || len(claimed) != 1 {
		t.Fatal(claimed, err) // this claim is never settled
	}
	testbed.RunCommand(t, environ(server, url), binary)
	d := next(t, deliveries)
	d.answer <- http.StatusOK
	if len(d.events) != 1 || d.events[0].User != "ann" {
		t.Errorf("delivered %+v", d.events)
	}
}

// shardOfAnn returns the shard number in the only key.
func shardOfAnn(t *testing.T, keys []string) (shard int) {
	t.Helper()
	if len(keys) != 1 {
		t.Fatal(keys)
	}
	digits, _, _ := strings.Cut(strings.TrimPrefix(keys[0], "t:ev_due_{ev"), "}")
	if err := json.Unmarshal([]byte(digits), &shard); err != nil {
		t.Fatal(err)
	}
	return shard
}

func TestDeadLetters(t *testing.T) {
	server := redistest.Start(t)
	url, deliveries := backend(t)
	b := startBrokers(t, server)
	p := testbed.RunCommand(t, environ(server, url), binary)
	b.ok(b.SetAckDeadline(t.Context(), events.AckDeadline{User: "ann", Data: []byte("7"), After: time.Millisecond}))
	d := next(t, deliveries)
	d.answer <- http.StatusGone
	p.Await("events were moved to the dead letters")

	r := testbed.Execute(t, environ(server, url), binary, "--dead-letters")
	var l struct {
		GivenUp int64           `json:"given_up"`
		Reason  events.Reason   `json:"reason"`
		Event   json.RawMessage `json:"event"`
	}
	if err := json.Unmarshal([]byte(r.Stdout), &l); err != nil || r.Code != 0 || l.Reason != events.Gone || l.GivenUp == 0 {
		t.Fatalf("%v, %+v", err, r)
	}
	var e event
	if err := json.Unmarshal(l.Event, &e); err != nil || e != d.events[0] || e.Data != 7 {
		t.Errorf("%v, %s; want %+v", err, l.Event, d.events)
	}
	again := testbed.Execute(t, environ(server, url), binary, "--dead-letters", "--retry")
	if again.Code != 0 || again.Stdout != r.Stdout || !strings.Contains(again.Stderr, `"retried":1`) {
		t.Errorf("%+v", again)
	}
	d = next(t, deliveries)
	d.answer <- http.StatusOK
	if len(d.events) != 1 || d.events[0] != e {
		t.Errorf("delivered %+v, want %+v", d.events, e)
	}
	if r := testbed.Execute(t, environ(server, url), binary, "--dead-letters"); r.Code != 0 || r.Stdout != "" {
		t.Errorf("when there are none: %+v", r)
	}
}

func TestBadWebhooks(t *testing.T) {
	for want, env := range map[string][]string{
		"webhook: a secret is missing":                {"SWITCHBOARD_WEBHOOKS_URL=https://h/" + secret},
		"webhook: URL: want https":                    {"SWITCHBOARD_WEBHOOKS_URL=" + secret, "SWITCHBOARD_WEBHOOKS_SECRETS=" + signing},
		"webhook: URL: the scheme must be":            {"SWITCHBOARD_WEBHOOKS_URL=http://h/" + secret, "SWITCHBOARD_WEBHOOKS_SECRETS=" + signing},
		"SWITCHBOARD_WEBHOOKS_EVENTS: want":           {"SWITCHBOARD_WEBHOOKS_EVENTS=user_online,user_left"},
		"webhooks.secrets_file: open nowhere: no":     {"SWITCHBOARD_WEBHOOKS_URL=https://h", "SWITCHBOARD_WEBHOOKS_SECRETS_FILE=nowhere"},
		"webhooks.secrets and webhooks.secrets_file:": {"SWITCHBOARD_WEBHOOKS_SECRETS=" + secret, "SWITCHBOARD_WEBHOOKS_SECRETS_FILE=x"},
	} {
		r := testbed.Execute(t, append(env, "SWITCHBOARD_REDIS=redis://localhost:1"), binary, "--http=127.0.0.1:0")
		if r.Code != 1 || !strings.HasPrefix(r.Stderr, "janitor: "+want) || strings.Contains(r.Stderr, secret) {
			t.Errorf("%s: %+v", want, r)
		}
	}
}
