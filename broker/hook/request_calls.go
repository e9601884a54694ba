package hook

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"switchboard/broker/work"
	"switchboard/internal/wire"
)

// RequestCalls sends the requests of clients to the backend's URL. A nil *RequestCalls has none.
type RequestCalls struct {
	Pool *work.Pool // runs the calls: a backend that hangs must block neither store calls nor hooks

	requests *Requests
	count    Count
	log      zerolog.Logger
	failing  atomic.Bool // the last call failed, which is logged once
}

// NewRequestCalls returns nil if o has no URL for requests.
func NewRequestCalls(o RequestOptions, count Count, log zerolog.Logger) (*RequestCalls, error) {
	if !o.Enabled() {
		return nil, nil
	}
	requests, err := NewRequests(o)
	if err != nil {
		return nil, err
	}
	return &RequestCalls{Pool: work.New(requests.Concurrency()), requests: requests, count: count, log: log}, nil
}

// Concurrency returns the most requests that are sent at once.
func (r *RequestCalls) Concurrency() int { return r.requests.Concurrency() }

// Ask sends a request that arrived at the time since, and returns the answer. Without one the error
// is for the client.
func (r *RequestCalls) Ask(ctx context.Context, request []byte, since time.Time) (json.RawMessage, error) {
	data, outcome, err := r.requests.Ask(ctx, request, since)
	r.count(Request, outcome)
	r.logChange(outcome, err)
	switch outcome {
	case Late:
		return nil, wire.Errorf(wire.Timeout, "the backend has not answered in time; it may have received the request")
	case Failed, Malformed:
		return nil, wire.Errorf(wire.Unavailable, "the backend gives no valid answer; it may have received the request")
	}
	return data, err
}

// logChange logs the first of several failures, and the first success after them.
func (r *RequestCalls) logChange(outcome Outcome, err error) {
	switch failed := outcome != Answered && outcome != Denied; {
	case !changed(&r.failing, failed):
	case failed:
		r.log.Warn().Err(err).Str("outcome", string(outcome)).Msg("the backend does not answer requests of clients")
	default:
		r.log.Info().Msg("the backend answers requests of clients again")
	}
}

// Wait waits for the calls under way.
func (r *RequestCalls) Wait() {
	if r != nil {
		r.Pool.Wait()
	}
}

// Close closes the connections to the backend.
func (r *RequestCalls) Close() {
	if r != nil {
		r.requests.Close()
	}
}
