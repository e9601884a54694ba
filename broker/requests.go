package broker

import (
	"cmp"
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"switchboard/broker/hook"
	"switchboard/broker/work"
	"switchboard/internal/wire"
)

// requestCalls sends the requests of clients to the backend's URL. A nil *requestCalls has none.
type requestCalls struct {
	requests *hook.Requests
	share    int        // the most requests of one sender that wait
	pool     *work.Pool // a separate pool: a backend that hangs must block neither store calls nor hooks
	outcomes *prometheus.CounterVec
	log      zerolog.Logger
	failing  atomic.Bool // the last call failed, which is logged once
}

// newRequestCalls returns nil if o has no URL for requests.
func newRequestCalls(o Options, outcomes *prometheus.CounterVec) (*requestCalls, error) {
	opts := o.Requests.Backend
	if !opts.Enabled() {
		return nil, nil
	}
	opts.Agent, opts.MaxAnswer = "switchboard/"+o.Version, o.Limits.MessageBytes
	requests, err := hook.NewRequests(opts)
	if err != nil {
		return nil, err
	}
	share := cmp.Or(o.Requests.Share, max(1, requests.Concurrency()/4))
	return &requestCalls{requests: requests, share: share, pool: work.New(requests.Concurrency()), outcomes: outcomes, log: o.Logger}, nil
}

// ask implements session.Requests.Ask.
func (r *requestCalls) ask(ctx context.Context, request []byte, since time.Time) (json.RawMessage, error) {
	data, outcome, err := r.requests.Ask(ctx, request, since)
	r.outcomes.WithLabelValues(string(hook.Request), string(outcome)).Inc()
	r.logChange(outcome, err)
	switch outcome {
	case hook.Late:
		return nil, wire.Errorf(wire.Timeout, "the backend has not answered in time; it may have received the request")
	case hook.Failed, hook.Malformed:
		return nil, wire.Errorf(wire.Unavailable, "the backend gives no valid answer; it may have received the request")
	}
	return data, err
}

// logChange logs the first of several failures, and the first success after them.
func (r *requestCalls) logChange(outcome hook.Outcome, err error) {
	switch failed := outcome != hook.Answered && outcome != hook.Denied; {
	case failed && !r.failing.Swap(true):
		r.log.Warn().Err(err).Str("outcome", string(outcome)).Msg("the backend does not answer requests of clients")
	case !failed && r.failing.Load() && r.failing.Swap(false):
		r.log.Info().Msg("the backend answers requests of clients again")
	}
}

// wait waits for the calls under way.
func (r *requestCalls) wait() {
	if r != nil {
		r.pool.Wait()
	}
}

// close closes the connections to the backend.
func (r *requestCalls) close() {
	if r != nil {
		r.requests.Close()
	}
}
