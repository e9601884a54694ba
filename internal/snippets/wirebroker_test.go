package snippets

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"switchboard/internal/await"
	"switchboard/internal/redistest"
	"switchboard/internal/testbed"
	"switchboard/internal/textconn"
)

// newExchange starts a broker with the configuration of the page, or else that of a development
// machine. In a configuration, BACKEND is the URL of the page's backend, REDIS that of a Redis, and
// SECRET the secret of tokens.
func newExchange(ctx context.Context, t *testing.T, page string) *exchange {
	t.Helper()
	e := &exchange{t: t, shape: make(shape), clients: make(map[string]textconn.Conn), calls: make(map[string]chan received), reads: make(map[string]func() received), posts: make(chan post)}
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { e.receive(ctx, w, r) }))
	t.Cleanup(backend.Close)

	config, err := os.ReadFile(filepath.Join("testdata/wire", strings.TrimSuffix(filepath.Base(page), ".md")+".yaml"))
	if errors.Is(err, os.ErrNotExist) {
		config, err = os.ReadFile(filepath.Join(root, "configs/development.yaml"))
	}
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(config), "BACKEND", backend.URL)
	if strings.Contains(text, "SECRET") {
		text = strings.ReplaceAll(text, "SECRET", tokenSecret)
		e.shape["eyJ…"] = tokenOfBob(ctx, t)
	}
	redis := ""
	if strings.Contains(text, "REDIS") {
		redis = redistest.Start(t).URL()
		text = strings.ReplaceAll(text, "REDIS", redis)
	}
	file := filepath.Join(t.TempDir(), "broker.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	e.broker = e.start("broker", "--config", file, "--http", "127.0.0.1:0", "--tcp", "127.0.0.1:0", "--log-format", "json")
	if e.http, err = e.broker.Logged(ctx, "listening", "http"); err == nil {
		e.tcp, err = e.broker.Logged(ctx, "listening", "tcp")
	}
	if err != nil {
		t.Fatalf("%v: %s", err, e.broker.Tail(3))
	}
	await.NoError(ctx, t, "the broker is ready", func() error {
		return e.check(step{status: "200", text: `{"ready":true}`}, e.call(ctx, step{method: "GET"}, "/readyz", ""))
	})
	if redis != "" {
		e.start("janitor", "--config", e.janitorConfig(text), "--redis", redis, "--log-format", "json")
	}
	return e
}

// tokenSecret signs tokens.
const tokenSecret = "a secret of thirty-two bytes or more"

// tokenOfBob returns the token that pages show as eyJ….
func tokenOfBob(ctx context.Context, t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(ctx, filepath.Join(programs, "switchboard"), "token", "issue", "--user", "bob", "--client", "tab-1", "--info", `{"name":"Bob"}`)
	cmd.Env = []string{"SWITCHBOARD_AUTH_HS256_SECRET=" + tokenSecret}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// janitorConfig returns a file with the settings of a broker that janitors have, too.
func (e *exchange) janitorConfig(broker string) string {
	_, webhooks, found := strings.Cut(broker, "\nwebhooks:\n")
	if found {
		webhooks = "webhooks:\n" + webhooks
	}
	file := filepath.Join(e.t.TempDir(), "janitor.yaml")
	if err := os.WriteFile(file, []byte(webhooks), 0o600); err != nil {
		e.t.Fatal(err)
	}
	return file
}

func (e *exchange) start(program string, args ...string) *testbed.Process {
	e.t.Helper()
	return testbed.Run(e.t, program, exec.Command(filepath.Join(programs, program), args...), nil)
}
