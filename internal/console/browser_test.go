package console_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"switchboard/internal/proc"
)

// The broker of the test: API keys of every kind, no tokens, and the whole kit.
const settings = `
http: 127.0.0.1:0
tcp: 127.0.0.1:0
log_format: json
auth:
  keys: ["plain:swb_admin_of_the_test admin boss", "plain:swb_reader_of_the_test read reader", "plain:swb_pusher_of_the_test push pusher"]
  client_publish: true
kit:
  rooms: {modes: {battle: {capacity: 4}}}
  holds:
  boards: {boards: {"*": {}}}
  accounts: {signing_key: "0123456789abcdef0123456789abcdef"}
  scenes:
`

// TestBrowser runs web/test/browser.test.mjs, in Chromium, against a broker in memory.
func TestBrowser(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dir := t.TempDir()
	binary, config := filepath.Join(dir, "broker"), filepath.Join(dir, "broker.yaml")
	if err := proc.GoBuild(ctx, "-o", binary, "switchboard/cmd/broker"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	broker, err := proc.Start("broker", exec.Command(binary, "--config", config), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		broker.Kill()
		if t.Failed() {
			t.Logf("log of the broker:\n%s", broker.Tail(40))
		}
	})
	http, err1 := broker.Logged(ctx, "listening", "http")
	tcp, err2 := broker.Logged(ctx, "listening", "tcp")
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	cmd := exec.CommandContext(ctx, "node", "--test", "web/test/browser.test.mjs")
	cmd.Env = append(os.Environ(), "BROKER_HTTP="+http, "BROKER_TCP="+tcp,
		"KEY_ADMIN=swb_admin_of_the_test", "KEY_READ=swb_reader_of_the_test", "KEY_PUSH=swb_pusher_of_the_test")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
