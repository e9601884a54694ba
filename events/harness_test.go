package events

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"switchboard/webhook"
)

const signing = "the deliveries are signed"

// fakeTruth is what a test says is so.
type fakeTruth struct {
	mu    sync.Mutex // guards the fields below
	there map[string]bool
	acked map[Place]bool
	err   error // of every question
	asked int
}

func (f *fakeTruth) set(name string, present bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.there[name] = present
}

func (f *fakeTruth) ack(client string, id int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.acked[Place{client, id}] = true
}

func (f *fakeTruth) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *fakeTruth) present(sort string, names []string) ([]bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	out := make([]bool, len(names))
	for i, name := range names {
		out[i] = f.there[sort+name]
	}
	return out, f.err
}

func (f *fakeTruth) Online(_ context.Context, users []string) ([]bool, error) {
	return f.present(userSort, users)
}

func (f *fakeTruth) Occupied(_ context.Context, channels []string) ([]bool, error) {
	return f.present(channelSort, channels)
}

func (f *fakeTruth) Acknowledged(_ context.Context, client string, id int64) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.acked[Place{client, id}], f.err
}

// endpoint is a backend that takes events, and remembers what it was sent. Next answers are taken from script.
type endpoint struct {
	t   *testing.T
	url string

	mu     sync.Mutex // guards the fields below
	script []http.HandlerFunc
	always http.HandlerFunc // when the script is over; nil takes what comes
	got    []got            // what was taken
	tried  int              // deliveries
	ids    map[string]bool
	again  int // events whose id was there before
}

// got is an event as a backend reads it.
type got struct {
	ID      string
	At      int64
	Type    Kind
	User    string
	Channel string
	Clients []Place
	Data    json.RawMessage
}

func (g got) String() string { return string(g.Type) + " " + g.User + g.Channel }

func newEndpoint(t *testing.T) *endpoint {
	e := &endpoint{t: t, ids: map[string]bool{}}
	s := httptest.NewServer(e)
	t.Cleanup(s.Close)
	e.url = s.URL
	return e
}

// ServeHTTP verifies every delivery, and counts what is taken.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender was killed in the middle
	}
	if err := webhook.Verify([]string{signing}, r.Header, body, 0); err != nil {
		e.t.Error(err)
	}
	var delivery struct{ Events []got }
	if err := json.Unmarshal(body, &delivery); err != nil || len(delivery.Events) == 0 {
		e.t.Errorf("a delivery of %q: %v", body, err)
	}
	e.mu.Lock()
	e.tried++
	answer := e.always
	if len(e.script) > 0 {
		answer, e.script = e.script[0], e.script[1:]
	}
	e.mu.Unlock()
	if answer != nil {
		w.Header().Set("Events", string(body))
		recorder := &status{ResponseWriter: w}
		answer(recorder, r)
		if recorder.code/100 > 2 {
			return
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, event := range delivery.Events {
		if e.ids[event.ID] {
			e.again++
			continue
		}
		e.ids[event.ID] = true
		e.got = append(e.got, event)
	}
}

// status remembers the code.
type status struct {
	http.ResponseWriter
	code int
}

func (s *status) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

// code answers with it.
func code(n int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(n) }
}

// taken are the events that came, each once, and forgets them.
func (e *endpoint) taken() (events []got) {
	e.mu.Lock()
	defer e.mu.Unlock()
	events, e.got = e.got, nil
	return events
}

func (e *endpoint) deliveries() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tried
}

func (e *endpoint) answers(always http.HandlerFunc, script ...http.HandlerFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.always, e.script = always, script
}

// stage is a dispatcher with all that it needs.
type stage struct {
	t *testing.T
	*fixture
	*Dispatcher
	truth    *fakeTruth
	endpoint *endpoint
}

func newStage(t *testing.T, open opener, change func(*Options)) *stage {
	s := &stage{t: t, fixture: open(t), endpoint: newEndpoint(t), truth: &fakeTruth{there: map[string]bool{}, acked: map[Place]bool{}}}
	s.Dispatcher = s.another(change)
	return s
}

// another is a second dispatcher over the same store, to the same endpoint.
func (s *stage) another(change func(*Options)) *Dispatcher {
	s.t.Helper()
	sender, err := webhook.New(webhook.Options{URL: s.endpoint.url, Secrets: []string{signing}, Timeout: 10 * time.Second})
	ok(s.t, err)
	s.t.Cleanup(sender.Close)
	opts := Options{Store: s.Store, Truth: s.truth, Sender: sender}
	if change != nil {
		change(&opts)
	}
	d, err := NewDispatcher(opts)
	ok(s.t, err)
	return d
}

// user changes the truth about a user, and notes it.
func (s *stage) user(name string, online bool) {
	s.t.Helper()
	s.truth.set(userSort+name, online)
	ok(s.t, s.UsersChanged(s.t.Context(), name)[0])
}

func (s *stage) channel(name string, occupied bool) {
	s.t.Helper()
	s.truth.set(channelSort+name, occupied)
	ok(s.t, s.ChannelsChanged(s.t.Context(), name)[0])
}

// rounds makes one of each kind, and says what was done.
func (s *stage) rounds() Report {
	s.t.Helper()
	did, err := s.DueRound(s.t.Context())
	ok(s.t, err)
	more, err := s.SendRound(s.t.Context())
	ok(s.t, err)
	did.add(more)
	return did
}

// told is what the endpoint has taken by now.
func (s *stage) told(what string, want ...string) []got {
	s.t.Helper()
	events := s.endpoint.taken()
	equal(s.t, what, events, want)
	return events
}

// sendFails makes a round in which sending fails.
func (s *stage) sendFails() Report {
	s.t.Helper()
	did, err := s.SendRound(s.t.Context())
	if err == nil || errors.Is(err, context.Canceled) {
		s.t.Errorf("sending: %v, want it to fail", err)
	}
	return did
}
