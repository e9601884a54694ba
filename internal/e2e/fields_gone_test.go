//go:build long

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"switchboard/internal/await"
	"switchboard/internal/keytable"
	"switchboard/internal/redistest"
)

// TestFieldsGoneWebhooks sets fields with a lease in channels without subscribers, and kills the
// broker and a janitor. The backend must receive one event for each channel whose namespace asks
// for it.
func TestFieldsGoneWebhooks(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	receiver := startReceiver(t)
	server := redistest.Start(t)
	startWithWebhooks := func(name string, args ...string) *process {
		cmd := command(name, append(args, "--redis", server.URL(), "--log-format", "json")...)
		cmd.Env = append(cmd.Env, "SWITCHBOARD_WEBHOOKS_URL="+receiver.url, "SWITCHBOARD_WEBHOOKS_SECRETS="+webhookSecret)
		return start(t, name, cmd, nil)
	}
	config := filepath.Join(t.TempDir(), "broker.yaml")
	rules := "namespaces:\n  'room:*': {fields_gone: true}\n  'quiet:*': {}\n"
	if err := os.WriteFile(config, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	b := &instance{process: startWithWebhooks("broker", "--config", config, "--http", "127.0.0.1:0", "--tcp", "127.0.0.1:0")}
	b.http = b.logged(ctx, t, "listening", "http")
	push := func(body string) {
		t.Helper()
		resp, err := http.Post("http://"+b.http+"/v1/push", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("push %s: %d", body, resp.StatusCode)
		}
	}
	janitor := startWithWebhooks("janitor")
	push(`{"channel":"quiet:1","set":{"seat/1":1},"ttl":1}`)
	push(`{"channel":"room:1","set":{"seat/1":1,"$$hold":{"user":"amy"}},"ttl":1}`)
	push(`{"channel":"room:2","set":{"seat/2":1},"ttl":3600}`)
	push(`{"channel":"room:3","set":{"seat/3":1},"ttl":2}`)
	b.end(ctx, t, syscall.SIGKILL)
	receiver.waitEvents(ctx, t, "room:1", "fields_gone")
	janitor.end(ctx, t, syscall.SIGKILL)
	startWithWebhooks("janitor")
	receiver.waitEvents(ctx, t, "room:3", "fields_gone")
	receiver.waitEvents(ctx, t, "room:1", "fields_gone")
	receiver.waitEvents(ctx, t, "room:2")
	receiver.waitEvents(ctx, t, "quiet:1")
	await.NoError(ctx, t, "the field that lives is due", func() error {
		due := 0
		for shard := range 16 {
			for _, z := range server.Client(t).ZRangeWithScores(ctx, fmt.Sprintf("ev_due_{ev%d}", shard), 0, -1).Val() {
				if z.Member == "f:room:2" {
					due++
				}
			}
		}
		if due != 1 {
			return fmt.Errorf("%d entries", due)
		}
		return nil
	})
	if _, err := keytable.Check(ctx, server.Client(t)); err != nil {
		t.Error(err)
	}
}
