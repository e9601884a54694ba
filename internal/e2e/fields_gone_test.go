//go:build long

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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
	webhooks := []string{"SWITCHBOARD_WEBHOOKS_URL=" + receiver.url, "SWITCHBOARD_WEBHOOKS_SECRETS=" + webhookSecret}
	config := filepath.Join(t.TempDir(), "broker.yaml")
	rules := "namespaces:\n  'room:*': {fields_gone: true}\n  'quiet:*': {}\n"
	if err := os.WriteFile(config, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	b := startBroker(t, "broker", server.URL(), webhooks, "--config", config)
	push := func(body string) { change(ctx, t, b, body) }
	janitor := startJanitor(t, server.URL(), webhooks)
	push(`{"channel":"quiet:1","set":{"seat/1":1},"ttl":1}`)
	push(`{"channel":"room:1","set":{"seat/1":1,"$$hold":{"user":"amy"}},"ttl":1}`)
	push(`{"channel":"room:2","set":{"seat/2":1},"ttl":3600}`)
	push(`{"channel":"room:3","set":{"seat/3":1},"ttl":2}`)
	end(ctx, t, b, syscall.SIGKILL)
	receiver.waitEvents(ctx, t, "room:1", "fields_gone")
	end(ctx, t, janitor, syscall.SIGKILL)
	startJanitor(t, server.URL(), webhooks)
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
