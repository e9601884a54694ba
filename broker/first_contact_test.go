package broker_test

import (
	"bytes"
	"io"
	"net/http"
	"runtime/pprof"
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

// TestNoFastPush: with fast push switched off, net/http serves all pushes of a connection, with the
// same answers.
func TestNoFastPush(t *testing.T) {
	for _, off := range []bool{false, true} {
		i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) { o.Runtime.NoFastPush = off })
		c := i.caller(t)
		for range 3 {
			c.expect(200, `"id"`, "POST", "/v1/push", "", aPush)
			c.expect(200, `"id"`, "POST", "/v1/push/batch", "", `{"messages":[`+aPush+`]}`)
		}
		var stacks bytes.Buffer
		if err := pprof.Lookup("goroutine").WriteTo(&stacks, 2); err != nil {
			t.Fatal(err)
		}
		if fast := strings.Contains(stacks.String(), "fastpush.(*conn).serve"); fast == off {
			t.Errorf("switched off: %v; served by fast push: %v", off, fast)
		}
		_ = c.c.Close()
		if err := i.stop(); err != nil {
			t.Fatal(err)
		}
	}
}
