package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coder/websocket"
	"github.com/golang-jwt/jwt/v5"

	"switchboard/internal/redistest"
	"switchboard/internal/testbed"
)

// TestSecretsStaySecret: neither the log nor the answers of a broker contain any of its secrets.
func TestSecretsStaySecret(t *testing.T) {
	word := func(name string) string { return "hunter2-" + name + "-0123456789abcdef0123456789abcdef" }
	redis := redistest.Start(t, "--requirepass", word("redis"))
	dir := t.TempDir()
	file := func(name string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(word(name)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	environ := []string{
		"SWITCHBOARD_LOG_LEVEL=trace", "SWITCHBOARD_INSECURE=true", "SWITCHBOARD_PPROF=127.0.0.1:0",
		"SWITCHBOARD_REDIS=redis://:" + word("redis") + "@" + redis.Addr,
		"SWITCHBOARD_AUTH_KEYS=plain:" + word("key"), "SWITCHBOARD_AUTH_HS256_SECRET=" + word("token"),
		"SWITCHBOARD_PEER_SECRET_FILE=" + file("peer"),
		"SWITCHBOARD_WEBHOOKS_URL=http://user:" + word("webhook") + "@127.0.0.1:1/" + word("webhook-path"),
		"SWITCHBOARD_WEBHOOKS_SECRETS=" + word("webhook-secret"),
		// No server listens on port 1: every hook call fails and is logged.
		"SWITCHBOARD_HOOKS_CONNECT=http://user:" + word("hook") + "@127.0.0.1:1/?key=" + word("hook-path"),
		"SWITCHBOARD_HOOKS_SECRETS_FILE=" + file("hook-secret"),
	}
	p := testbed.RunCommand(t, environ, binary, "--http=127.0.0.1:0", "--tcp=off")
	listening := p.Await("listening")
	url := fmt.Sprintf("http://%s", listening["http"])
	p.Await("Redis answers")
	awaitStatus(t, url+"/readyz", http.StatusOK)
	var output strings.Builder
	for _, page := range []string{
		url + "/metrics", url + "/readyz", url + "/healthz", url + "/v1/servers", url + "/v1/" + word("nowhere"),
		url + "/ws?token=" + word("given"), url + "/peer/link?from=stranger", fmt.Sprintf("http://%s/debug/pprof/cmdline", listening["pprof"]),
	} {
		for _, key := range []string{"", word("key"), word("wrong")} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, page, nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Authorization", "Bearer "+key)
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(response.Body)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&output, "%s %v\n%s\n", response.Status, response.Header, body)
			response.Body.Close()
		}
	}
	connectWithHook(t, url, word("token"))
	p.Await("the hook gives no answer")
	p.Interrupt(syscall.SIGHUP)
	p.Await("reloaded API keys, token keys and namespaces")
	redis.Kill()
	awaitStatus(t, url+"/readyz", http.StatusServiceUnavailable)
	output.WriteString(p.Tail(0))
	for part := range strings.SplitSeq(output.String(), "hunter2-") {
		name, _, isSecret := strings.Cut(part, "-0123456789abcdef")
		if isSecret && name != "nowhere" { // the answer may repeat the path of the request
			t.Errorf("the output contains the secret %s", name)
		}
	}
}

// connectWithHook connects with a valid token, which causes a hook call.
func connectWithHook(t *testing.T, url, secret string) {
	t.Helper()
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"sub": "alice"}).SignedString([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(url, "http")+"/ws?token="+token, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	if _, text, err := c.Read(t.Context()); err != nil || !strings.Contains(string(text), "unavailable") {
		t.Errorf("%s, %v", text, err)
	}
}
