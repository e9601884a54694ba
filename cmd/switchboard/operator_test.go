package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/client"
)

// TestCheck: the broker explains what a client may do.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	file, secret, other := filepath.Join(dir, "b.yaml"), filepath.Join(dir, "secret"), filepath.Join(dir, "other")
	write(t, file, "namespaces:\n  \"inbox:{user}\": {subscribe: named}\n  \"room:*\": {state: users, fields: {\"seat/*\": {write: claim, bytes: 16}}}\n")
	write(t, secret, strings.Repeat("s", 32))
	write(t, other, strings.Repeat("o", 32))
	b := startBroker(t, []string{"SWITCHBOARD_AUTH_HS256_SECRET_FILE=" + secret}, "--config", file)
	good := strings.TrimSpace(b.ok(t, "token", "issue", "--user=alice", "--signing-key", secret))
	bad := strings.TrimSpace(b.ok(t, "token", "issue", "--user=alice", "--signing-key", other))
	b.steps(t, []step{
		{line: "check inbox:alice --user alice", want: "subscribe\tyes\t"},
		{line: "check inbox:alice --user bob", want: "subscribe\tno\t"},
		{line: "check inbox:alice --token -", stdin: good + "\n", want: "subscribe\tyes\t"},
		{line: "check room:7 --user bob --field seat/A1", want: "write seat/A1\tyes\t"},
		{line: "check room:7", want: "user\t(none)\n"},
		{line: "check inbox:alice --token " + bad, code: exitForbidden},
	})
	if r := b.cli(t, "check", "inbox:alice", "--token", bad); !strings.Contains(r.Stdout, "bad token") {
		t.Errorf("%+v", r)
	}
	b.steps(t, []step{
		{line: "token revoke alice --before 2024-01-01T00:00:00Z", want: "issued before\t2024-01-01T00:00:00Z\n"},
		{line: "check inbox:alice --token -", stdin: good + "\n", want: "subscribe\tyes\t"},
		{line: "token revoke --client bob/phone", want: "disconnected\t0\n"},
		{line: "token revoke alice", want: "disconnected\t0\n"},
		{line: "check inbox:alice --token -", stdin: good + "\n", code: exitForbidden},
		{line: "token revoke", code: exitUsage},
		{line: "token revoke alice --client alice/phone", code: exitUsage},
		{line: "token revoke alice --before yesterday", code: exitUsage},
	})
}

// TestWebhooks: an event that the backend refuses is a dead letter, and retry sends it again.
func TestWebhooks(t *testing.T) {
	var accept atomic.Bool
	received := make(chan struct{}, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !accept.Load() {
			w.WriteHeader(http.StatusGone)
			return
		}
		received <- struct{}{}
	}))
	defer server.Close()
	b := startBroker(t, []string{
		"SWITCHBOARD_WEBHOOKS_URL=" + server.URL, "SWITCHBOARD_WEBHOOKS_SECRETS=" + strings.Repeat("s", 32), "SWITCHBOARD_WEBHOOKS_EVENTS=user_online",
	})
	b.connect(t, client.Options{User: "alice", Client: "phone"}, "news")
	type backlog struct{ Dead int }
	eventually(t, "a dead letter", func() bool { return asJSON[backlog](t, b, "webhooks", "waiting").Dead == 1 })
	b.steps(t, []step{
		{line: "webhooks waiting", want: "dead letters\t1\n"},
		{line: "webhooks dead", want: `"user":"alice"`},
	})
	type letters struct{ Letters []struct{ ID string } }
	if r := b.cli(t, "doctor"); r.Code != exitFailed || !strings.HasPrefix(r.Stdout, "problem\tdead_letters\t"+server.URL) {
		t.Errorf("%+v", r)
	}
	id := asJSON[letters](t, b, "webhooks", "dead").Letters[0].ID
	b.steps(t, []step{
		{line: "webhooks retry " + id, want: "1 event queued again\n"},
	})
	eventually(t, "a dead letter again", func() bool { return asJSON[backlog](t, b, "webhooks", "waiting").Dead == 1 })
	b.steps(t, []step{
		{line: "webhooks waiting", want: "last answer\t410\n"},
		{line: "webhooks drop none", code: exitNotFound},
		{line: "webhooks drop " + id, want: "1 event dropped\n"},
		{line: "doctor", want: "healthy: nothing needs attention\n"},
	})
	b.connect(t, client.Options{User: "bob", Client: "phone"}, "news")
	eventually(t, "another dead letter", func() bool { return asJSON[backlog](t, b, "webhooks", "waiting").Dead == 1 })
	accept.Store(true)
	if out := b.ok(t, "webhooks", "retry"); out != "1 event queued again\n" {
		t.Errorf("%q", out)
	}
	select {
	case <-received:
	case <-time.After(timeout):
		t.Error("the event was not sent again")
	}
}
