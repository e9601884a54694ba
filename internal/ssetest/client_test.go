package ssetest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// serve answers request i with answers[i], and the last one forever. It records the ids of the
// requests.
func serve(t *testing.T, answers ...string) (url string, lastIDs *[]string) {
	t.Helper()
	lastIDs = new([]string)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := answers[min(len(*lastIDs), len(answers)-1)]
		*lastIDs = append(*lastIDs, r.Header.Get("Last-Event-ID"))
		if answer == "" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		if !strings.HasPrefix(answer, "{") {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(s.Close)
	return s.URL, lastIDs
}

// newClient returns a client that waits for an hour before it connects again, unless a stream sets
// another delay.
func newClient(url string, onEvent func(Event) error) *Client {
	transport := &http.Transport{DisableKeepAlives: true}
	return &Client{
		URL: func() string { return url }, HTTP: &http.Client{Transport: transport}, OnEvent: onEvent, Retry: time.Hour,
	}
}

// TestClient checks that a client resumes after the last complete event and stops after a 204. The
// retry delay applies even if it comes with an incomplete event.
func TestClient(t *testing.T) {
	url, lastIDs := serve(t, "retry:1\nid:1\ndata:a\n\nid:2\ndata:b\n", "id:2\ndata:b\n\nretry:2\n", "id:3\n\n:\n\n", "")
	var got []string
	var resumed []bool
	c := newClient(url, func(e Event) error {
		got = append(got, e.ID+e.Data)
		return nil
	})
	ends := 0
	c.OnOpen, c.OnEnd = func(r bool) { resumed = append(resumed, r) }, func(error) { ends++ }
	if err := c.Run(t.Context()); !errors.Is(err, ErrStopped) {
		t.Fatal(err)
	}
	if want := []string{"", "1", "2", "3"}; !slices.Equal(*lastIDs, want) {
		t.Errorf("the requests had the ids %q, want %q", *lastIDs, want)
	}
	if !slices.Equal(got, []string{"1a", "2b"}) || !slices.Equal(resumed, []bool{false, true, true}) || ends != 3 {
		t.Errorf("events %q, streams %v, %d ends", got, resumed, ends)
	}
	if c.Retry != 2*time.Millisecond {
		t.Errorf("the retry delay is %v", c.Retry)
	}
}

func TestClientStops(t *testing.T) {
	url, _ := serve(t, `{"error":"no"}`)
	if err := newClient(url, nil).Run(t.Context()); err == nil || !strings.Contains(err.Error(), `"200 OK"`) {
		t.Errorf("an answer that is no stream: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	url, lastIDs := serve(t, "retry:1\nid:1\ndata:a\n\nid:2\ndata:b\n\n")
	c := newClient(url, func(e Event) error {
		if e.Data == "b" {
			cancel()
			return nil
		}
		return errors.New("not yet")
	})
	c.OnEnd = func(error) { c.OnEvent = func(Event) error { cancel(); return nil } }
	if err := c.Run(ctx); err != nil || !slices.Equal(*lastIDs, []string{"", "1"}) {
		t.Errorf("the end of the context: %v after requests with the ids %q", err, *lastIDs)
	}
	c = newClient(url, func(Event) error { return nil })
	c.URL = func() string { return "http://127.0.0.1:1" }
	ctx, cancel = context.WithCancel(t.Context())
	c.OnEnd = func(error) { cancel() } // a connection that fails is no reason to give up
	if err := c.Run(ctx); err != nil {
		t.Error(err)
	}
}
