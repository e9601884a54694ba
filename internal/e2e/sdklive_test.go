//go:build long

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"switchboard/internal/testbed"
)

const (
	sdkKey           = "api-key-of-the-sdk"
	sdkTokenSecret   = "a-secret-of-at-least-thirty-two-bytes"
	sdkRequestSecret = "a-secret-of-requests"
)

// TestJavaScriptKit runs js/sdk-live.js: the kit and the server entry of client/js, with a broker
// that has API keys, tokens and a backend that answers requests.
func TestJavaScriptKit(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	cmd := exec.Command("node", "js/sdk-live.js")
	cmd.Env = append(os.Environ(), "SDK_KEY="+sdkKey, "SDK_TOKEN_SECRET="+sdkTokenSecret, "SDK_REQUEST_SECRET="+sdkRequestSecret)
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	type line struct {
		Port int
		Done bool
	}
	lines := make(chan line, 2)
	node := testbed.Run(t, "node", cmd, func(text []byte) {
		var l line
		if err := json.Unmarshal(text, &l); err == nil {
			lines <- l
		}
	})
	next := func() (l line) {
		select {
		case l = <-lines:
		case <-ctx.Done():
			t.Fatal(ctx.Err())
		}
		return l
	}
	config := fmt.Sprintf(`
http: 127.0.0.1:0
tcp: 127.0.0.1:0
log_format: json
auth:
  keys: ["plain:%s"]
  hs256_secret: %s
  client_publish: true
requests:
  url: http://127.0.0.1:%d/requests
  secrets: [%s]
kit:
  rooms: {modes: {battle: {capacity: 4}}}
  holds:
  boards: {boards: {"*": {}}}
  accounts: {}
  sessions:
  scenes:
`, sdkKey, sdkTokenSecret, next().Port, sdkRequestSecret)
	path := filepath.Join(t.TempDir(), "broker.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	b := startBroker(t, "broker", "", nil, "--config", path)
	if _, err := io.WriteString(input, b.HTTP+"\n"); err != nil {
		t.Fatal(err)
	}
	if code, err := node.Wait(ctx); err != nil || code != 0 {
		t.Fatalf("node exited with %d (%v), want 0", code, err)
	}
	if !next().Done {
		t.Error("the script did not reach its end")
	}
}
