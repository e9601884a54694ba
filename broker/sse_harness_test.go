package broker_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/internal/ssetest"
)

// stream is a client of Server-Sent Events.
type stream struct {
	t    *testing.T
	resp *http.Response
	r    *ssetest.Reader
	last string // id of the last event
}

// sseRequest returns a request to /sse. lastID may be empty.
func sseRequest(t *testing.T, method, base, query, lastID, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, base+"/sse?"+query, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	return req
}

// openStream opens a stream over a connection of its own.
func openStream(t *testing.T, i instance, query, lastID string) *stream {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true}
	return openStreamOver(t, &http.Client{Transport: transport}, sseRequest(t, "GET", "http://"+i.HTTP, query, lastID, ""))
}

func openStreamOver(t *testing.T, client *http.Client, req *http.Request) *stream {
	t.Helper()
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(testTimeout, func() { resp.Body.Close() })
	s := &stream{t: t, resp: resp, r: ssetest.NewReader(resp.Body, req.Header.Get("Last-Event-ID"))}
	t.Cleanup(func() { timer.Stop(); s.close() })
	return s
}

func (s *stream) close() { s.resp.Body.Close() }

// next returns the next event, except for comments.
func (s *stream) next() (ssetest.Event, error) {
	for {
		e, err := s.r.Next()
		if err != nil || !e.Comment {
			if err == nil {
				s.last = e.ID
			}
			return e, err
		}
	}
}

// expect reads an event and checks its name and the given fields of its data.
func (s *stream) expect(name string, want object) object {
	s.t.Helper()
	e, err := s.next()
	if err != nil {
		s.t.Fatalf("the stream ended (%s): %v", s.resp.Status, err)
	}
	got := decode(s.t, []byte(e.Data))
	if e.Name != name || e.ID == "" {
		s.t.Fatalf("event %s with id %q, want %s: %v", e.Name, e.ID, name, got)
	}
	for k, v := range want {
		if fmt.Sprint(got[k]) != fmt.Sprint(v) {
			s.t.Fatalf("%s is %v, want %v, in %v", k, got[k], v, got)
		}
	}
	return got
}

// expectEnd reads the closing event and the end of the stream, and returns the retry delay in ms.
func (s *stream) expectEnd(code string, reconnect bool) (retry int) {
	s.t.Helper()
	e, err := s.next()
	if err != nil || e.Name != "closing" {
		s.t.Fatalf("event %+v, %v, want closing", e, err)
	}
	if got := decode(s.t, []byte(e.Data)); got["code"] != code || got["reconnect"] != reconnect {
		s.t.Fatalf("closing: %v", got)
	}
	if e, err := s.r.Next(); err == nil {
		s.t.Fatalf("after closing comes %+v", e)
	}
	return e.Retry
}

// requestSSE makes a request to /sse and returns the response and its body. For a stream, the
// returned body is empty.
func (i instance) requestSSE(t *testing.T, method, query, lastID string, header http.Header) (*http.Response, string) {
	t.Helper()
	req := sseRequest(t, method, "http://"+i.HTTP, query, lastID, "")
	for name, values := range header {
		req.Header[name] = values
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("Content-Type") == "text/event-stream" {
		return resp, ""
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// sseServers are options with which different parts of the broker serve streams: the event loop of
// the TCP port, and net/http if that port is off.
var sseServers = map[string]func(*broker.Options){
	"on the loop": nil,
	"on net/http": func(o *broker.Options) { o.Listen.TCP = "off" },
}
