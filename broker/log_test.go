package broker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"switchboard/broker"
	"switchboard/broker/auth"
	"switchboard/queue"
)

// lines collects a log, for reading after its broker has stopped.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// of returns the lines with the message, and the number of events that they count.
func (l *lines) of(t *testing.T, message string) (found []object, events int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		var o object
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatal(err)
		}
		if o["message"] != message {
			continue
		}
		found = append(found, o)
		if n, counted := o["repeated"].(float64); counted {
			events += int(n)
		} else {
			events++
		}
	}
	return found, events
}

// expectFew checks that the log has few lines with the message, and that they count all events.
func (l *lines) expectFew(t *testing.T, message string, events int) []object {
	t.Helper()
	found, n := l.of(t, message)
	if n != events || len(found) > events/4 {
		t.Errorf("%s: %d lines count %d events, want few lines and %d events", message, len(found), n, events)
	}
	return found
}

// TestRejectedLoginsAreLogged: the first rejection of each kind is logged at once and the others
// are counted, with the address and without the credentials.
func TestRejectedLoginsAreLogged(t *testing.T) {
	const attempts = 40
	readKey, entry := auth.NewKey()
	keys, err := auth.NewKeys([]string{entry + " read"})
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := auth.NewTokens(auth.Options{HS256: [][]byte{[]byte(strings.Repeat("s", 32))}})
	if err != nil {
		t.Fatal(err)
	}
	log := new(lines)
	s, _ := redisStore(t, shared.Client(t), testBeat)
	i := start(t, s, func(o *broker.Options) {
		o.Access.Keys, o.Access.Tokens, o.Logger, o.Links.Secret = keys, tokens, zerolog.New(log), strings.Repeat("p", 32)
	})
	for range attempts {
		for _, key := range []string{"", "Bearer hunter2", "Bearer " + readKey} {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+i.HTTP+"/v1/push", strings.NewReader(`{}`))
			req.Header.Set("Authorization", key)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		resp, err := http.Get("http://" + i.HTTP + "/peer/link?from=hunter2")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		for _, token := range []string{"", "hunter2"} {
			p := dialers["tcp"](t, i)
			p.send(`{"type":"connect","client":"phone","token":%q}`, token)
			p.untilClosed()
		}
	}
	if err := i.stop(); err != nil {
		t.Fatal(err)
	}
	for _, message := range []string{
		"a call is refused: no API key", "a call is refused: an unknown API key", "a call is refused: an API key without the scope",
		"a client is refused: no token", "a client is refused: a bad token",
		"an instance is refused: it does not prove that it knows the secret",
	} {
		for _, line := range log.expectFew(t, message, attempts) {
			if address, _ := line["address"].(string); !strings.HasPrefix(address, "127.0.0.1:") || line["level"] != "warn" {
				t.Errorf("%s: %v", message, line)
			}
		}
	}
	if strings.Contains(log.text.String(), "hunter2") || strings.Contains(log.text.String(), readKey) {
		t.Error("the credentials are in the log")
	}
}

// TestRefusedOriginsAreLogged: a page of another origin is refused on each path, and the log names
// the origin.
func TestRefusedOriginsAreLogged(t *testing.T) {
	const attempts = 20
	log := new(lines)
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) { o.Logger = zerolog.New(log) })
	origin := "https://evil.example/" + strings.Repeat("x", 1000)
	paths := []string{"GET /ws", "GET /sse?channel=news", "POST /sse", "POST /v1/push"}
	for range attempts {
		for _, path := range paths {
			method, path, _ := strings.Cut(path, " ")
			req, _ := http.NewRequestWithContext(t.Context(), method, "http://"+i.HTTP+path, strings.NewReader(`{}`))
			req.Header.Set("Origin", origin)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusForbidden {
				t.Fatalf("%s is %d", path, resp.StatusCode)
			}
		}
	}
	if err := i.stop(); err != nil {
		t.Fatal(err)
	}
	for _, line := range log.expectFew(t, "a page is refused: its origin is not allowed", attempts*len(paths)) {
		if line["origin"] != origin[:200] || line["level"] != "warn" {
			t.Errorf("%v", line)
		}
	}
}

// unreachableQueue fails all appends to channels.
type unreachableQueue struct{ Queue }

func (q unreachableQueue) AppendChannel(context.Context, queue.ChannelPush) (queue.Appended, error) {
	return queue.Appended{}, errors.New("away")
}

// TestStoreFailuresAreCounted: while the store fails, the log has few lines, not one for each call.
func TestStoreFailuresAreCounted(t *testing.T) {
	const pushes = 100
	log := new(lines)
	s := memoryStore(queue.Options{})
	s.queue = unreachableQueue{s.queue}
	i := start(t, s, func(o *broker.Options) { o.Logger = zerolog.New(log) })
	p := dialers["tcp"](t, i)
	p.connect("phone", "alice")
	for n := range pushes {
		if status, _ := i.call(t, "POST", "/v1/push", fmt.Sprintf(`{"channel":"news","data":%d}`, n)); status != http.StatusServiceUnavailable {
			t.Fatalf("a push is %d", status)
		}
		p.send(`{"type":"publish","channel":"news","data":1}`)
		p.expect(object{"type": "error", "code": "unavailable"})
	}
	if err := i.stop(); err != nil {
		t.Fatal(err)
	}
	found := log.expectFew(t, "store call failed", 2*pushes)
	if len(found) > 0 && !strings.Contains(fmt.Sprint(found[0]["error"]), "away") {
		t.Errorf("the first line lacks the cause: %v", found[0])
	}
}
