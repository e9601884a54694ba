package backend_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"switchboard/client"
	"switchboard/client/backend"
	"switchboard/internal/freeport"
)

// answers is a server that answers with each of the statuses once, and then with 200.
func answers(t *testing.T, statuses ...int) (url string, calls *int) {
	t.Helper()
	calls = new(int)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		*calls++
		if *calls > len(statuses) {
			fmt.Fprint(w, `{"results":[{"channel":"news","id":7}]}`)
			return
		}
		w.WriteHeader(statuses[*calls-1])
		fmt.Fprint(w, `{"error":{"code":"unavailable","message":"later"}}`)
	}))
	t.Cleanup(server.Close)
	return server.URL, calls
}

// closed returns the address of a port without a listener.
func closed(t *testing.T) string {
	t.Helper()
	address, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + address
}

// TestRepeats: after a 503, a push is repeated if it has a key.
func TestRepeats(t *testing.T) {
	url, calls := answers(t, 503, 503)
	results, err := newClient(t, url).Push(t.Context(), backend.Push{Channel: "news", Data: 1, Key: "k"})
	if err != nil || *calls != 3 || results[0].ID != 7 {
		t.Errorf("with a key: %d calls, %+v, %v", *calls, results, err)
	}
	url, calls = answers(t, 503)
	_, err = newClient(t, url).Push(t.Context(), backend.Push{Channel: "news", Data: 1})
	if refused, ok := errors.AsType[*backend.Error](err); !ok || refused.Code != client.Unavailable || *calls != 1 {
		t.Errorf("without a key: %d calls, %v", *calls, err)
	}
	batch := []backend.Push{{Channel: "a", Data: 1, Key: "k"}, {Channel: "b", Data: 1}}
	url, calls = answers(t, 503)
	if _, err := newClient(t, url).Batch(t.Context(), batch); err == nil || *calls != 1 {
		t.Errorf("a batch in which a key is missing: %d calls, %v", *calls, err)
	}
}

// TestRepetitionIsBounded: all attempts end after RetryFor, and when the context ends.
func TestRepetitionIsBounded(t *testing.T) {
	many := make([]int, 1000)
	for i := range many {
		many[i] = 503
	}
	url, calls := answers(t, many...)
	c, err := backend.New(backend.Options{URLs: []string{url}, RetryFor: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Servers(t.Context()); err == nil || *calls < 2 || *calls > 10 {
		t.Errorf("%d calls, %v", *calls, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Servers(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestNextInstance: a call that no instance has received goes to the next one, also without a key,
// and the next call goes there first.
func TestNextInstance(t *testing.T) {
	url, calls := answers(t)
	dead := closed(t)
	c, err := backend.New(backend.Options{URLs: []string{dead, url}, RetryFor: -1})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := c.Push(t.Context(), backend.Push{Channel: "news", Data: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if *calls != 2 || c.URL() != url {
		t.Errorf("%d calls, at %s", *calls, c.URL())
	}
	c, _ = backend.New(backend.Options{URLs: []string{dead}, RetryFor: -1})
	_, err = c.Servers(t.Context())
	if lost, ok := errors.AsType[*backend.UnreachableError](err); !ok || lost.Sent || lost.URL != dead || !strings.Contains(err.Error(), "refused") {
		t.Errorf("%v", err)
	}
}

// TestForeignAnswers: an answer without an error of a broker has the code of its status.
func TestForeignAnswers(t *testing.T) {
	for status, code := range map[int]client.ErrorCode{404: client.NotFound, 401: client.Unauthorized, 413: client.TooLarge, 500: client.BadRequest} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "<html>", status)
		}))
		_, err := newClient(t, server.URL).Servers(t.Context())
		server.Close()
		if refused, ok := errors.AsType[*backend.Error](err); !ok || refused.Code != code || refused.Status != status {
			t.Errorf("%d: %v", status, err)
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	defer server.Close()
	if _, err := newClient(t, server.URL).Servers(t.Context()); err == nil || !strings.Contains(err.Error(), "not that of a broker") {
		t.Error(err)
	}
}

func TestOptions(t *testing.T) {
	for _, urls := range [][]string{nil, {"127.0.0.1:8080"}, {"ws://host"}, {"http://user:hunter2@host"}, {"http://hunter2@%"}} {
		if _, err := backend.New(backend.Options{URLs: urls}); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v: %v", urls, err)
		}
	}
}
