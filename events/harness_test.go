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

const secret = "the deliveries are signed"

// fakeTruth is a Truth whose answers a test sets.
type fakeTruth struct {
	mu      sync.Mutex // guards the fields below
	entries map[string]bool
	acked   map[ClientMessage]bool
	fields  map[string]*fakeFields // by channel
	err     error                  // every call returns it
}

// fakeFields is the state of a channel.
type fakeFields struct {
	log   []EndedMessage // with and without fields that have ended
	due   int64
	empty bool
}

func (f *fakeFields) state() FieldsState {
	s := FieldsState{Due: f.due, Empty: f.empty}
	if n := len(f.log); n > 0 {
		s.Last = f.log[n-1].ID
	}
	return s
}

// setFields changes the state of a channel.
func (f *fakeTruth) setFields(channel string, change func(*fakeFields)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fields[channel] == nil {
		f.fields[channel] = &fakeFields{}
	}
	change(f.fields[channel])
}

func (f *fakeTruth) Fields(_ context.Context, channels []string) []FieldsState {
	f.mu.Lock()
	defer f.mu.Unlock()
	states := make([]FieldsState, len(channels))
	for i, channel := range channels {
		if c := f.fields[channel]; c != nil {
			states[i] = c.state()
		}
		states[i].Err = f.err
	}
	return states
}

// EndFields returns at most two messages at a time.
func (f *fakeTruth) EndFields(ctx context.Context, positions []FieldsPosition) []EndedFields {
	ended := make([]EndedFields, len(positions))
	for i, p := range positions {
		ended[i].FieldsState = f.Fields(ctx, []string{p.Channel})[0]
		f.mu.Lock()
		c := f.fields[p.Channel]
		for _, m := range c.log {
			if m.ID <= p.After {
				continue
			}
			if ended[i].More = len(ended[i].Messages) == 2; ended[i].More {
				break
			}
			if ended[i].Upto = m.ID; m.Cleared || m.Gone != nil {
				ended[i].Messages = append(ended[i].Messages, m)
			}
		}
		f.mu.Unlock()
	}
	return ended
}

func (f *fakeTruth) set(entry string, present bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.entries[entry] = present
}

func (f *fakeTruth) ack(client string, id int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.acked[ClientMessage{client, id}] = true
}

func (f *fakeTruth) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *fakeTruth) present(prefix string, names []string) ([]bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]bool, len(names))
	for i, name := range names {
		out[i] = f.entries[prefix+name]
	}
	return out, f.err
}

func (f *fakeTruth) Online(_ context.Context, users []string) ([]bool, error) {
	return f.present(userPrefix, users)
}

func (f *fakeTruth) Occupied(_ context.Context, channels []string) ([]bool, error) {
	return f.present(channelPrefix, channels)
}

func (f *fakeTruth) Acknowledged(_ context.Context, client string, id int64) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.acked[ClientMessage{client, id}], f.err
}

// endpoint is a backend that stores the events that it accepts.
type endpoint struct {
	t   *testing.T
	url string

	mu       sync.Mutex         // guards the fields below
	next     []http.HandlerFunc // answers of the next deliveries
	always   http.HandlerFunc   // answer after next is empty; nil accepts all
	accepted []received         // since the last call of take; without repeated events
	attempts int                // deliveries
	ids      map[string]bool    // of all accepted events
	repeated int                // accepted events whose id was in ids
}

// received is an event as a backend decodes it.
type received struct {
	ID      string
	At      int64
	Type    Kind
	User    string
	Channel string
	Clients []ClientMessage
	Data    json.RawMessage
	Message int64
	Cleared bool
	Gone    map[string]string
}

func (r received) String() string { return string(r.Type) + " " + r.User + r.Channel }

func newEndpoint(t *testing.T) *endpoint {
	e := &endpoint{t: t, ids: map[string]bool{}}
	s := httptest.NewServer(e)
	t.Cleanup(s.Close)
	e.url = s.URL
	return e
}

// ServeHTTP verifies the signature of each delivery and stores the events that it accepts.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender was killed during the request
	}
	if err := webhook.Verify([]string{secret}, r.Header, body, 0); err != nil {
		e.t.Error(err)
	}
	var delivery struct{ Events []received }
	if err := json.Unmarshal(body, &delivery); err != nil || len(delivery.Events) == 0 {
		e.t.Errorf("a delivery of %q: %v", body, err)
	}
	e.mu.Lock()
	e.attempts++
	answer := e.always
	if len(e.next) > 0 {
		answer, e.next = e.next[0], e.next[1:]
	}
	e.mu.Unlock()
	if answer != nil {
		w.Header().Set("Events", string(body))
		recorder := &statusRecorder{ResponseWriter: w}
		answer(recorder, r)
		if recorder.code/100 > 2 {
			return
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, event := range delivery.Events {
		if e.ids[event.ID] {
			e.repeated++
			continue
		}
		e.ids[event.ID] = true
		e.accepted = append(e.accepted, event)
	}
}

// statusRecorder stores the status code of an answer.
type statusRecorder struct {
	http.ResponseWriter
	code int
}

func (s *statusRecorder) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

// status returns a handler that answers with a status code.
func status(n int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(n) }
}

// take returns and removes the accepted events, each once.
func (e *endpoint) take() (events []received) {
	e.mu.Lock()
	defer e.mu.Unlock()
	events, e.accepted = e.accepted, nil
	return events
}

func (e *endpoint) deliveries() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.attempts
}

// setAnswers sets the answers of the next deliveries and of all later ones.
func (e *endpoint) setAnswers(always http.HandlerFunc, next ...http.HandlerFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.always, e.next = always, next
}

// harness is a dispatcher with a store, a truth and an endpoint.
type harness struct {
	t *testing.T
	*testStore
	*Dispatcher
	truth    *fakeTruth
	endpoint *endpoint
}

func newHarness(t *testing.T, open openFunc, change func(*Options)) *harness {
	h := &harness{t: t, testStore: open(t), endpoint: newEndpoint(t), truth: &fakeTruth{entries: map[string]bool{}, acked: map[ClientMessage]bool{}, fields: map[string]*fakeFields{}}}
	h.Dispatcher = h.newDispatcher(change)
	return h
}

// newDispatcher returns another dispatcher for the same store, truth and endpoint.
func (h *harness) newDispatcher(change func(*Options)) *Dispatcher {
	h.t.Helper()
	sender, err := webhook.New(webhook.Options{URL: h.endpoint.url, Secrets: []string{secret}, Timeout: 10 * time.Second})
	ok(h.t, err)
	h.t.Cleanup(sender.Close)
	opts := Options{Store: h.Store, Truth: h.truth, Sender: sender}
	if change != nil {
		change(&opts)
	}
	d, err := NewDispatcher(opts)
	ok(h.t, err)
	return d
}

// setUser sets whether a user is online, and records the change.
func (h *harness) setUser(name string, online bool) {
	h.t.Helper()
	h.truth.set(userPrefix+name, online)
	ok(h.t, h.UsersChanged(h.t.Context(), name)[0])
}

// setChannel sets whether a channel is occupied, and records the change.
func (h *harness) setChannel(name string, occupied bool) {
	h.t.Helper()
	h.truth.set(channelPrefix+name, occupied)
	ok(h.t, h.ChannelsChanged(h.t.Context(), name)[0])
}

// runRounds runs a DueRound and a SendRound and returns their report.
func (h *harness) runRounds() Report {
	h.t.Helper()
	report, err := h.DueRound(h.t.Context())
	ok(h.t, err)
	more, err := h.SendRound(h.t.Context())
	ok(h.t, err)
	report.add(more)
	return report
}

// wantEvents checks the events that the endpoint has accepted since the last call.
func (h *harness) wantEvents(what string, want ...string) {
	h.t.Helper()
	equal(h.t, what, h.endpoint.take(), want)
}

// sendFailing runs a SendRound whose attempts must fail.
func (h *harness) sendFailing() Report {
	h.t.Helper()
	report, err := h.SendRound(h.t.Context())
	if err == nil || errors.Is(err, context.Canceled) {
		h.t.Errorf("SendRound: error %v, want a failed attempt", err)
	}
	return report
}
