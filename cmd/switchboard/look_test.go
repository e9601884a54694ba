package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"switchboard/client"
	"switchboard/internal/await"
	"switchboard/internal/testbed"
)

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	await.True(t, what, ok)
}

func TestLook(t *testing.T) {
	b := startBroker(t, kitEnviron)
	b.connect(t, client.Options{User: "alice", Client: "phone"}, "news")
	b.ok(t, "push", "news", "1")
	b.steps(t, []step{
		{line: "channels", want: "news\t1\n"},
		{line: "channels --prefix x", want: ""},
		{line: "channels news", want: "subscribers\t1\nservers\t1\nmessages\t1\nlast id\t"},
		{line: "channels a␣b", code: exitUsage, want: "bad_request"},
		{line: "servers", want: "\t127.0.0.1:"},
		{line: "servers --stats", want: "\t1\t"},
		{line: "self", want: "store\tmemory\n"},
		{line: "self", want: "kit\t"},
		{line: "webhooks waiting", code: exitNotFound, want: ""},
		{line: "webhooks", want: "Usage:"},
	})
	type servers struct {
		Servers []struct{ Connections int }
	}
	if s := asJSON[servers](t, b, "servers"); len(s.Servers) != 1 {
		t.Errorf("%+v", s)
	}
	if s := asJSON[servers](t, b, "servers", "--stats"); len(s.Servers) != 1 || s.Servers[0].Connections != 1 {
		t.Errorf("%+v", s)
	}
}

// TestQueues: tail prints what waits for a device, and then what arrives, also for a user's
// devices.
func TestQueues(t *testing.T) {
	b := startBroker(t, nil)
	b.once(t, "alice", "phone")
	b.ok(t, "push", "--client", "alice/phone", "1")
	environ := []string{"SWITCHBOARD_URL=" + b.url}
	one, all := follow(t, environ, "tail", "--client", "alice/phone", "--json"), follow(t, environ, "tail", "--user", "alice", "--json")
	for n := 1; n <= 2; n++ {
		if m := one.line(t); m.Client != "alice/phone" || m.Data != float64(n) {
			t.Errorf("%+v", m)
		}
		if n == 1 {
			b.ok(t, "push", "--client", "alice/phone", "2")
		}
	}
	for n := 1; n <= 2; n++ {
		if m := all.line(t); m.Client != "alice/phone" || m.Data != float64(n) {
			t.Errorf("%+v", m)
		}
	}
	if r := b.cli(t, "tail", "--client", "carol/tab"); r.Code != exitNotFound {
		t.Errorf("%+v", r)
	}
}

// TestLocalCheck: check decides by a file like broker check.
func TestLocalCheck(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b.yaml")
	write(t, file, "namespaces:\n  \"inbox:{user}\": {subscribe: named}\n")
	for user, want := range map[string]string{"alice": "subscribe  yes", "bob": "subscribe  no"} {
		r := testbed.Execute(t, nil, binary, "check", "inbox:alice", "--user", user, "--config", file)
		if r.Code != exitOK || !strings.Contains(r.Stdout, want) {
			t.Errorf("%s: %+v", user, r)
		}
	}
	for line, code := range map[string]int{"check --local": exitUsage, "check news --local --json": exitUsage, "check news --config /nowhere": exitFailed} {
		if r := testbed.Execute(t, nil, binary, strings.Fields(line)...); r.Code != code {
			t.Errorf("%s: %+v", line, r)
		}
	}
}

// answering is a server with one answer.
func answering(t *testing.T, answer string) broker {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) }))
	t.Cleanup(server.Close)
	return broker{url: server.URL}
}

// TestOperatorAnswers: commands print the answers of calls that need a backend or a token.
func TestOperatorAnswers(t *testing.T) {
	for _, tt := range []struct {
		answer string
		steps  []step
	}{
		{`{"user":"bob","channel":"news","rule":"news","connect":{"allowed":true,"why":"open"},
		   "rights":[{"right":"publish","allowed":false,"why":"news: publish is off"}],
		   "fields":[{"field":"seat/A1","allowed":true,"why":"open","limits":"16 bytes"}]}`, []step{
			{line: "check news --user bob --field seat/A1", want: "publish\tno\tnews: publish is off\nwrite seat/A1\tyes\topen; 16 bytes\n"},
			{line: "check --channel news --token -", stdin: "x\n", want: "connect\tyes\topen\n"},
		}},
		{`{"channel":"news","error":"token: bad token"}`, []step{{line: "check news --token x", code: exitForbidden}}},
		{`{"waiting":3,"dead":1,"dropped":0,"oldest":1795330758518,"endpoints":[{"url":"https://h/x","events":["user_online"]}]}`, []step{
			{line: "webhooks waiting", want: "waiting\t3\noldest\t2026-11-22T06:59:18.518Z\ndead letters\t1\n"},
		}},
		{`{"letters":[{"id":"1-3","reason":"refused","at":1795330758518,"event":{"type":"user_offline"}}]}`, []step{
			{line: "webhooks dead", want: "2026-11-22T06:59:18.518Z\trefused\t{\"type\":\"user_offline\"}\n"},
		}},
		{`{"retried":17}`, []step{{line: "webhooks retry", want: "17 events queued again\n"}}},
	} {
		answering(t, tt.answer).steps(t, tt.steps)
	}
}

func TestLoad(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, strings.Repeat("s", 32)+"\n")
	b := startBroker(t, []string{"SWITCHBOARD_AUTH_HS256_SECRET_FILE=" + secret})
	type report struct {
		Connections, Pushes, Delivered, Missing, Failed int
		Delivery                                        struct{ P99 float64 } `json:"delivery_ms"`
	}
	r := b.cli(t, "load", "--connections=1", "--duration=1s")
	if r.Code != exitForbidden || !strings.Contains(r.Stderr, "needs tokens") {
		t.Errorf("without tokens: %+v", r)
	}
	got := asJSON[report](t, b, "load", "--connections=20", "--channels=2", "--rate=50", "--duration=500ms", "--signing-key", secret)
	if got.Connections != 20 || got.Pushes == 0 || got.Delivered != 10*got.Pushes || got.Missing+got.Failed != 0 || got.Delivery.P99 <= 0 {
		t.Errorf("%+v", got)
	}
	b.steps(t, []step{{line: "load --rate 0", code: exitUsage, want: "must be above 0"}})
}
