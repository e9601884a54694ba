//go:build long

package console_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"switchboard/internal/freeport"
	"switchboard/internal/redistest"
	"switchboard/internal/testbed"
)

// settings are those of the broker: API keys of every kind, no tokens, webhooks and the whole kit.
const settings = `
http: 127.0.0.1:0
tcp: 127.0.0.1:0
log_format: json
redis: %[1]s
auth:
  keys: ["plain:swb_admin_of_the_test admin boss", "plain:swb_reader_of_the_test read reader", "plain:swb_pusher_of_the_test push pusher"]
  client_publish: true
webhooks: {url: "http://%[2]s/", secrets: ["0123456789abcdef"]}
kit:
  rooms: {modes: {battle: {capacity: 4}}}
  holds:
  boards: {boards: {"*": {}}}
  accounts: {signing_key: "0123456789abcdef0123456789abcdef"}
  scenes:
`

// janitorSettings are those of the janitor, which sends the webhooks.
const janitorSettings = `
log_format: json
redis: %[1]s
webhooks: {url: "http://%[2]s/", secrets: ["0123456789abcdef"]}
`

// TestBrowser runs web/test/browser.test.mjs in Chromium, against a broker and a janitor. The
// script receives the webhooks.
func TestBrowser(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	dir := t.TempDir()
	if err := testbed.Build(ctx, "-o", dir, "switchboard/cmd/broker", "switchboard/cmd/janitor"); err != nil {
		t.Fatal(err)
	}
	redis := redistest.Start(t).URL()
	backend, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	broker := startCommand(t, dir, "broker", fmt.Sprintf(settings, redis, backend))
	startCommand(t, dir, "janitor", fmt.Sprintf(janitorSettings, redis, backend))
	http, err1 := broker.Logged(ctx, "listening", "http")
	tcp, err2 := broker.Logged(ctx, "listening", "tcp")
	if err := cmp.Or(err1, err2); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "node", "--test", "web/test/browser.test.mjs")
	cmd.Env = append(os.Environ(), "BROKER_HTTP="+http, "BROKER_TCP="+tcp, "BACKEND="+backend,
		"KEY_ADMIN=swb_admin_of_the_test", "KEY_READ=swb_reader_of_the_test", "KEY_PUSH=swb_pusher_of_the_test")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// startCommand starts a command of dir with these settings until the test ends.
func startCommand(t *testing.T, dir, name, settings string) *testbed.Process {
	t.Helper()
	config := filepath.Join(dir, name+".yaml")
	if err := os.WriteFile(config, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	return testbed.Run(t, name, exec.Command(filepath.Join(dir, name), "--config", config), nil)
}
