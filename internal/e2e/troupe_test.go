package e2e

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// troupe runs the cast.
type troupe struct {
	ledger   *ledger
	node     *process
	input    io.WriteCloser // of node
	chromium *process
	exit     context.Context // ends when the page and the Go clients shall go
	leave    context.CancelFunc
}

// enter starts all clients; the ledger hears of what they see.
func enter(ctx context.Context, t *testing.T, cast []member, l *ledger) *troupe {
	t.Helper()
	tr := &troupe{ledger: l}
	tr.exit, tr.leave = context.WithCancel(ctx)
	t.Cleanup(tr.leave)
	var inNode, inPage []member
	for _, m := range cast {
		switch m.kind {
		case page:
			inPage = append(inPage, m)
		case golang:
			tr.startGo(t, m)
		default:
			inNode = append(inNode, m)
		}
	}
	tr.startNode(t, inNode)
	tr.startPage(t, inPage)
	return tr
}

func (tr *troupe) startNode(t *testing.T, cast []member) {
	t.Helper()
	cmd := exec.Command("node", "js/clients.js")
	var err error
	if tr.input, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	tr.node = start(t, "node", cmd, func(text []byte) {
		var e event
		if err := json.Unmarshal(text, &e); err != nil {
			tr.ledger.complain("node said %q: %v", text, err)
			return
		}
		tr.ledger.see(e)
	})
	if err := json.NewEncoder(tr.input).Encode(cast); err != nil {
		t.Fatal(err)
	}
}

// startPage serves the page and has Chromium show it.
func (tr *troupe) startPage(t *testing.T, cast []member) {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServer(http.Dir("js")))
	mux.HandleFunc("GET /plans", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(cast)
	})
	mux.HandleFunc("POST /events", func(_ http.ResponseWriter, r *http.Request) {
		var events []event
		if err := json.NewDecoder(r.Body).Decode(&events); err != nil {
			tr.ledger.complain("the page's events: %v", err)
		}
		for _, e := range events {
			tr.ledger.see(e)
		}
	})
	mux.HandleFunc("GET /leave", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-tr.exit.Done():
		case <-r.Context().Done():
		}
	})
	server := httptest.NewServer(mux) // on 127.0.0.1, as the brokers are: that makes it a good origin
	// Not t.TempDir: what Chromium's last children write must not fail the test.
	profile, err := os.MkdirTemp("", "switchboard-chromium-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		_ = os.RemoveAll(profile)
	})
	tr.chromium = start(t, "chromium", exec.Command("chromium", "--headless", "--no-sandbox", "--disable-gpu",
		"--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
		"--disable-sync", "--disable-breakpad", "--disable-crash-reporter", "--no-first-run",
		"--no-proxy-server", "--user-data-dir="+profile, server.URL+"/page.html"), nil)
}

// exeunt has all clients leave, and waits until they have.
func (tr *troupe) exeunt(ctx context.Context, t *testing.T, n int) {
	t.Helper()
	tr.leave()
	if _, err := io.WriteString(tr.input, "leave\n"); err != nil {
		t.Fatal(err)
	}
	tr.ledger.until(ctx, t, "all clients leave", func() bool { return tr.ledger.left == n })
	tr.chromium.end(ctx, t, syscall.SIGTERM)
	if err := tr.input.Close(); err != nil {
		t.Fatal(err)
	}
	if code, err := tr.node.Wait(ctx); err != nil || code != 0 {
		t.Errorf("node ended with %d (%v), want 0", code, err)
	}
}
