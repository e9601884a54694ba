package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"switchboard/client"
	"switchboard/internal/freeport"
	"switchboard/internal/redistest"
)

// script answers {"got":REQUEST}, or fails as the request says.
const script = `
read -r request
case "$request" in
  *sold_out*) echo '{"error":{"code":"sold_out","message":"come back tomorrow","data":{"left":0}}}'; exit 1;;
  *crash*) echo secret; exit 3;;
  *quiet*) ;;
  *garbage*) echo 'not JSON';;
  *) echo "{\"got\":$request}";;
esac`

// ask sends a request as alice.
func ask(t *testing.T, c *client.Client, data string) (string, error) {
	t.Helper()
	reply, err := c.Request(t.Context(), data)
	return string(reply), err
}

// TestWorker: a worker takes requests from Redis and replies through the broker.
func TestWorker(t *testing.T) {
	server := redistest.Start(t)
	b := startBroker(t, []string{"SWITCHBOARD_REDIS=" + server.URL(), "SWITCHBOARD_PREFIX=t:"})
	c := b.connect(t, client.Options{User: "alice", Client: "phone"}, "news")
	worker := follow(t, []string{"SWITCHBOARD_URL=" + b.url, "PATH=/usr/bin:/bin"},
		"requests", "--redis", server.URL(), "--prefix=t:", "--", "sh", "-c", script)
	reply, err := ask(t, c, "hello")
	var answer struct {
		Got struct{ Client, User, Query string }
	}
	if err := errors.Join(err, json.Unmarshal([]byte(reply), &answer)); err != nil || answer.Got.Client != "alice/phone" || answer.Got.Query != "hello" {
		t.Errorf("%s, %v", reply, err)
	}
	if line := worker.next(t); !strings.HasPrefix(line, "alice/phone\t") || !strings.Contains(line, "\tok\t") {
		t.Errorf("%q", line)
	}
	for data, want := range map[string]string{
		"sold_out": `{"error":{"code":"sold_out","message":"come back tomorrow","data":{"left":0}}}`,
		"crash":    `{"error":{"code":"failed","message":"the command failed"}}`,
		"garbage":  `{"error":{"code":"failed","message":"the answer is not JSON"}}`,
		"quiet":    "null",
	} {
		if reply, err := ask(t, c, data); err != nil || reply != want {
			t.Errorf("%s: %s, %v; want %s", data, reply, err, want)
		}
	}
	if code := worker.interrupt(t); code != exitOK {
		t.Errorf("interrupted: %d, %s", code, worker.errors())
	}
}

// TestRequestServer: the broker posts requests to the command, which verifies the signatures.
func TestRequestServer(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, strings.Repeat("s", 32)+"\n")
	address, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	b := startBroker(t, []string{"SWITCHBOARD_REQUESTS_URL=http://" + address + "/", "SWITCHBOARD_REQUESTS_SECRETS_FILE=" + secret})
	c := b.connect(t, client.Options{User: "alice", Client: "phone"}, "news")
	server := follow(t, []string{"SWITCHBOARD_URL=" + b.url, "PATH=/usr/bin:/bin"},
		"requests", "--listen", address, "--secret-file", secret, "--json", "--", "sh", "-c", script)
	b.awaitError(t, server, "waiting for requests on http://"+address)
	if reply, err := ask(t, c, "hello"); err != nil || !strings.Contains(reply, `"query":"hello"`) {
		t.Errorf("%s, %v", reply, err)
	}
	if line := server.next(t); !strings.Contains(line, `"client":"alice/phone"`) || !strings.Contains(line, `"result":"ok"`) {
		t.Errorf("%q", line)
	}
	_, err = ask(t, c, "sold_out")
	if refused, ok := errors.AsType[*client.Error](err); !ok || refused.Code != "sold_out" {
		t.Errorf("%v", err)
	}
	if reply, err := ask(t, c, "quiet"); err != nil || reply != "null" {
		t.Errorf("%s, %v", reply, err)
	}
	res, err := http.Post("http://"+address+"/", "application/json", strings.NewReader(`{"client":"x","ref":1}`))
	if err != nil || res.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a signature: %v, %v", res, err)
	}
	if code := server.interrupt(t); code != exitOK {
		t.Errorf("interrupted: %d, %s", code, server.errors())
	}
	b.steps(t, []step{
		{line: "requests -- true", code: exitUsage, want: "missing: --redis or --listen"},
		{line: "requests --listen 127.0.0.1:0 -- true", code: exitUsage, want: "needs --secret-file"},
		{line: "requests --redis redis://x", code: exitUsage, want: "missing: a command"},
		{line: "requests --redis bogus://x -- true", code: exitUsage, want: "bad Redis URL"},
	})
}

// awaitError waits until a command has written a text to the standard error.
func (b broker) awaitError(t *testing.T, l *lines, text string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%q on stderr", text), func() bool { return strings.Contains(l.errors(), text) })
}
