package broker_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"switchboard/broker"
	"switchboard/queue"
)

// TestUnknownPaths: the port describes itself, and names the unknown path or method.
func TestUnknownPaths(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), nil)
	for _, row := range []struct {
		method, path, kind string
		status             int
		contains           string
	}{
		{"GET", "/", "text/plain", 200, "/v1 for backends"},
		{"GET", "/nothing", "text/plain", 404, "not found"},
		{"GET", "/v1", "application/json", 404, "there is no GET /v1"},
		{"GET", "/v1/channel", "application/json", 404, "there is no GET /v1/channel"},
		{"DELETE", "/v1/push", "application/json", 405, "the method must be POST"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), row.method, "http://"+i.HTTP+row.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != row.status || !strings.Contains(string(text), row.contains) || !strings.HasPrefix(resp.Header.Get("Content-Type"), row.kind) {
			t.Errorf("%s %s: %s %q %s, %v", row.method, row.path, resp.Status, resp.Header.Get("Content-Type"), text, err)
		}
	}
}

// TestConsole checks that a browser that opens the port is sent to the console, if there is one.
func TestConsole(t *testing.T) {
	pages := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "at "+r.URL.Path) })
	const browser, program = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8", "*/*"
	for _, row := range []struct {
		console      http.Handler
		accept, path string
		status       int
		contains     string
	}{
		{pages, browser, "/", 200, "at /console/"},
		{pages, program, "/", 200, "/v1 for backends"},
		{pages, browser, "/console/console.js", 200, "at /console/console.js"},
		{nil, browser, "/", 200, "/v1 for backends"},
		{nil, browser, "/console/", 404, "not found"},
	} {
		i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) { o.Console = row.console })
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+i.HTTP+row.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", row.accept)
		resp, err := http.DefaultClient.Do(req) // follows redirects
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != row.status || !strings.Contains(string(text), row.contains) {
			t.Errorf("%s for %s: %s %s, %v", row.path, row.accept, resp.Status, text, err)
		}
	}
}
