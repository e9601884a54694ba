package api

import (
	"context"
	"encoding/json"
	"net/http"

	"switchboard/internal/wire"
)

// Webhooks are the events that the backend receives.
type Webhooks interface {
	// Backlog returns the events that wait.
	Backlog(ctx context.Context) (Backlog, error)
	// DeadLetters returns a page of about limit events that are no longer sent. The first cursor is
	// ""; next is "" after the last page. The error is registry.ErrBadCursor for a malformed cursor.
	DeadLetters(ctx context.Context, cursor string, limit int) (letters []DeadLetter, next string, err error)
	// Retry queues the dead letters again and returns their number.
	Retry(ctx context.Context) (int, error)
	// Change removes the dead letter of the event with an id, and reports whether there was one. With
	// retry, the event is queued again.
	Change(ctx context.Context, event string, retry bool) (bool, error)
}

// Backlog describes the events that wait.
type Backlog struct {
	Waiting int   `json:"waiting"`          // not sent yet
	Dead    int   `json:"dead"`             // no longer sent
	Dropped int64 `json:"dropped"`          // counter: dead letters for which there was no room
	Oldest  int64 `json:"oldest,omitempty"` // of those that wait, ms since 1970
	// Endpoints are the receivers of the events.
	Endpoints []Receiver `json:"endpoints"`
	// Attempts are the failed attempts since the last successful one. Of the 16 lists of events, which
	// are sent independently, it is the most.
	Attempts int   `json:"attempts"`
	RetryAt  int64 `json:"retry_at,omitempty"` // the next attempt after a failed one, ms since 1970
	// Last is the last attempt. Nil means that there was none lately.
	Last *Attempt `json:"last,omitempty"`
}

// Attempt is an attempt to send events.
type Attempt struct {
	At     int64  `json:"at"`               // ms since 1970
	Status int    `json:"status,omitempty"` // of the answer; 200 for every 2xx, 0 for no answer
	Error  string `json:"error,omitempty"`  // why there was no answer
}

// Receiver is a URL that receives events.
type Receiver struct {
	URL    string   `json:"url"`    // without user, password and query
	Events []string `json:"events"` // the types
}

// DeadLetter is an event that is no longer sent.
type DeadLetter struct {
	ID     string          `json:"id,omitempty"`
	Reason string          `json:"reason"`
	At     int64           `json:"at"` // when it became a dead letter, ms since 1970
	Event  json.RawMessage `json:"event"`
}

// withWebhooks returns a handler that answers with the result of f, or 404 without webhooks.
func (a api) withWebhooks(f func(r *http.Request) (any, error)) func(r *http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		if a.Webhooks == nil {
			return nil, wire.Errorf(wire.NotFound, "webhooks are not configured (webhooks.url)")
		}
		return f(r)
	}
}

func (a api) backlog(r *http.Request) (any, error) { return a.Webhooks.Backlog(r.Context()) }

func (a api) deadLetters(r *http.Request) (any, error) {
	cursor, limit, err := page(r, 1)
	if err != nil {
		return nil, err
	}
	letters, next, err := a.Webhooks.DeadLetters(r.Context(), cursor, limit)
	return struct {
		Letters []DeadLetter `json:"letters"`
		Cursor  string       `json:"cursor,omitempty"`
	}{append([]DeadLetter{}, letters...), next}, err
}

func (a api) retryDeadLetters(r *http.Request) (any, error) {
	n, err := a.Webhooks.Retry(r.Context())
	return map[string]int{"retried": n}, err
}

func (a api) retryDeadLetter(r *http.Request) (any, error) { return a.changeDeadLetter(r, true) }

func (a api) dropDeadLetter(r *http.Request) (any, error) { return a.changeDeadLetter(r, false) }

func (a api) changeDeadLetter(r *http.Request, retry bool) (any, error) {
	event := r.PathValue("event")
	found, err := a.Webhooks.Change(r.Context(), event, retry)
	if err == nil && !found {
		err = wire.Errorf(wire.NotFound, "event: no dead letter has the id %.80q", event)
	}
	return struct{}{}, err
}
