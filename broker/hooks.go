package broker

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"switchboard/broker/hook"
	"switchboard/broker/session"
	"switchboard/broker/work"
	"switchboard/internal/wire"
)

// hookCalls asks the backend whether clients may connect and subscribe. A nil *hookCalls has no
// hooks.
type hookCalls struct {
	hooks      *hook.Hooks
	pool       *work.Pool // a separate pool: a backend that hangs must not block store calls
	openTokens bool       // clients choose their user, so the backend may replace it
	outcomes   *prometheus.CounterVec
	log        zerolog.Logger

	failing struct{ connect, subscribe atomic.Bool } // the last call failed, which is logged once
}

// newHookCalls returns nil if o has no hooks.
func newHookCalls(o Options, outcomes *prometheus.CounterVec) (*hookCalls, error) {
	opts := o.Access.Hooks
	if !opts.Enabled() {
		return nil, nil
	}
	opts.Agent = "switchboard/" + o.Version
	hooks, err := hook.New(opts)
	if err != nil {
		return nil, err
	}
	return &hookCalls{
		hooks: hooks, pool: work.New(hooks.Concurrency()), openTokens: o.Access.Tokens.Open(),
		outcomes: outcomes, log: o.Logger,
	}, nil
}

// forSessions returns the hooks as package session calls them.
func (h *hookCalls) forSessions() (s session.Hooks) {
	if h == nil {
		return s
	}
	s.Pool = h.pool
	if h.hooks.Asks(hook.Connect) {
		s.Connect = h.ask
	}
	if h.hooks.Asks(hook.Subscribe) {
		s.Subscribe = h.ask
	}
	return s
}

// ask calls a hook. Without an answer it returns an error that asks the client to try again later.
func (h *hookCalls) ask(ctx context.Context, q hook.Question) (hook.Answer, error) {
	a, outcome, err := h.hooks.Ask(ctx, q)
	if a.User != "" && a.User != q.User && !h.openTokens {
		outcome, err = hook.Malformed, errors.New("the answer names another user than the token; only a token may name a user")
	}
	h.outcomes.WithLabelValues(string(q.Hook), string(outcome)).Inc()
	h.logChange(q.Hook, outcome, err)
	if err != nil {
		return hook.Answer{}, wire.Errorf(wire.Unavailable, "the backend that decides cannot be asked; try again later")
	}
	if outcome == hook.Allowed {
		return a, nil
	}
	refusal := "connect: not allowed"
	if q.Hook == hook.Subscribe {
		refusal = "channel " + q.Channel + ": not allowed to subscribe"
	}
	if a.Reason != "" {
		refusal += ": " + a.Reason
	}
	return a, wire.Errorf(wire.Forbidden, "%s", refusal)
}

// logChange logs the first of several failures, and the first success after them.
func (h *hookCalls) logChange(kind hook.Kind, outcome hook.Outcome, err error) {
	failing := &h.failing.connect
	if kind == hook.Subscribe {
		failing = &h.failing.subscribe
	}
	switch {
	case err != nil && !failing.Swap(true):
		h.log.Warn().Err(err).Str("hook", string(kind)).Str("outcome", string(outcome)).
			Msg("the hook gives no answer; all clients that need one are refused")
	case err == nil && failing.Load() && failing.Swap(false):
		h.log.Info().Str("hook", string(kind)).Msg("the hook answers again")
	}
}

// wait waits for the calls under way.
func (h *hookCalls) wait() {
	if h != nil {
		h.pool.Wait()
	}
}

// close closes the connections to the backend.
func (h *hookCalls) close() {
	if h != nil {
		h.hooks.Close()
	}
}
