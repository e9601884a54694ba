//go:build long

package e2e

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"switchboard/client/js"
	"switchboard/internal/testbed"
)

// A recorder collects the events of clients.
type recorder interface {
	record(event)
	fail(format string, args ...any)
}

// A runner runs the clients.
type runner struct {
	ledger   *ledger
	node     *testbed.Process
	input    io.WriteCloser // of node
	chromium *testbed.Process
	exit     context.Context // ends when the page and the Go clients must leave
	stopGo   context.CancelFunc
}

// startClients starts all clients. They report their events to the ledger.
func startClients(ctx context.Context, t *testing.T, plans []clientPlan, l *ledger) *runner {
	t.Helper()
	r := &runner{ledger: l}
	r.exit, r.stopGo = context.WithCancel(ctx)
	t.Cleanup(r.stopGo)
	var inNode, inPage []clientPlan
	for _, plan := range plans {
		switch plan.kind {
		case page:
			inPage = append(inPage, plan)
		case golang:
			r.startGo(t, plan)
		default:
			inNode = append(inNode, plan)
		}
	}
	r.node, r.input = startNode(t, inNode, l)
	r.chromium = startPage(r.exit, t, inPage, l)
	return r
}

// startNode runs clients in Node. It returns the process and its stdin.
func startNode(t *testing.T, plans any, l recorder) (*testbed.Process, io.WriteCloser) {
	t.Helper()
	return startScript(t, "node", exec.Command("node", "js/clients.js"), plans, l)
}

// startNative runs clients of client/js in Hermes, as a bundle for React Native. It returns the
// process that is their native part, and its stdin.
func startNative(ctx context.Context, t *testing.T, plans any, l recorder) (*testbed.Process, io.WriteCloser) {
	t.Helper()
	bundle := filepath.Join(t.TempDir(), "bundle.js")
	if out, err := exec.CommandContext(ctx, "node", "native/bundle.js", bundle).CombinedOutput(); err != nil {
		t.Fatalf("bundle for React Native: %v\n%s\nif packages are missing: make install-test-tools", err, out)
	}
	return startScript(t, "hermes", exec.Command("node", "native/host.js", bundle), plans, l)
}

// startScript starts a script that runs clients. It reads their plans from its stdin, which is
// returned, and writes their events to stdout.
func startScript(t *testing.T, name string, cmd *exec.Cmd, plans any, l recorder) (*testbed.Process, io.WriteCloser) {
	t.Helper()
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	script := testbed.Run(t, name, cmd, func(text []byte) {
		var e event
		if err := json.Unmarshal(text, &e); err != nil {
			l.fail("output of %s %q: %v", name, text, err)
			return
		}
		l.record(e)
	})
	if err := json.NewEncoder(input).Encode(plans); err != nil {
		t.Fatal(err)
	}
	return script, input
}

// startPage serves the page with the clients and opens it in Chromium. The clients leave when exit
// ends.
func startPage(exit context.Context, t *testing.T, plans any, l recorder) *testbed.Process {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServer(http.Dir("js")))
	mux.Handle("GET /client/js/dist/", http.StripPrefix("/client/js/", http.FileServerFS(js.Dist)))
	mux.HandleFunc("GET /plans", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(plans)
	})
	mux.HandleFunc("POST /events", func(_ http.ResponseWriter, req *http.Request) {
		var events []event
		if err := json.NewDecoder(req.Body).Decode(&events); err != nil {
			l.fail("the page's events: %v", err)
		}
		for _, e := range events {
			l.record(e)
		}
	})
	mux.HandleFunc("GET /leave", func(_ http.ResponseWriter, req *http.Request) {
		select {
		case <-exit.Done():
		case <-req.Context().Done():
		}
	})
	server := httptest.NewServer(mux) // on 127.0.0.1 like the brokers, so that they accept its origin
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return startChromium(t, server.URL+"/page.html")
}

// startChromium opens a page in a browser with a profile of its own. args are more arguments.
func startChromium(t *testing.T, page string, args ...string) *testbed.Process {
	t.Helper()
	// Not t.TempDir: child processes of Chromium may still write while the directory is removed.
	profile, err := os.MkdirTemp("", "switchboard-chromium-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(profile) })
	return testbed.Run(t, "chromium", exec.Command("chromium", append(args, "--headless", "--no-sandbox", "--disable-gpu",
		"--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
		"--disable-sync", "--disable-breakpad", "--disable-crash-reporter", "--no-first-run",
		"--no-proxy-server", "--user-data-dir="+profile, page)...), nil)
}

// stop disconnects all clients and waits until all have left.
func (r *runner) stop(ctx context.Context, t *testing.T, n int) {
	t.Helper()
	r.stopGo()
	if _, err := io.WriteString(r.input, "leave\n"); err != nil {
		t.Fatal(err)
	}
	r.ledger.waitFor(ctx, t, "all clients leave", func() bool { return r.ledger.left == n })
	end(ctx, t, r.chromium, syscall.SIGTERM)
	if err := r.input.Close(); err != nil {
		t.Fatal(err)
	}
	if code, err := r.node.Wait(ctx); err != nil || code != 0 {
		t.Errorf("node exited with %d (%v), want 0", code, err)
	}
}
