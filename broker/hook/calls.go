package hook

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/rs/zerolog"

	"switchboard/broker/work"
	"switchboard/internal/wire"
)

// Count is called with the outcome of each call.
type Count func(kind Kind, outcome Outcome)

// Calls asks the backend whether clients may connect and subscribe. A nil *Calls has no hooks.
type Calls struct {
	Pool *work.Pool // runs the calls: a backend that hangs must not block store calls

	hooks      *Hooks
	openTokens bool
	count      Count
	log        zerolog.Logger

	failing struct{ connect, subscribe atomic.Bool } // the last call failed, which is logged once
}

// NewCalls returns nil if o has no hooks. With openTokens clients choose their user, so the backend
// may replace it.
func NewCalls(o Options, openTokens bool, count Count, log zerolog.Logger) (*Calls, error) {
	if !o.Enabled() {
		return nil, nil
	}
	hooks, err := New(o)
	if err != nil {
		return nil, err
	}
	return &Calls{Pool: work.New(hooks.Concurrency()), hooks: hooks, openTokens: openTokens, count: count, log: log}, nil
}

// Asks reports whether there is a hook of this kind.
func (c *Calls) Asks(kind Kind) bool { return c != nil && c.hooks.Asks(kind) }

// Ask calls a hook. Without an answer it returns an error that asks the client to try again later.
func (c *Calls) Ask(ctx context.Context, q Question) (Answer, error) {
	a, outcome, err := c.hooks.Ask(ctx, q)
	if a.User != "" && a.User != q.User && !c.openTokens {
		outcome, err = Malformed, errors.New("the answer names another user than the token; only a token may name a user")
	}
	c.count(q.Hook, outcome)
	c.logChange(q.Hook, outcome, err)
	if err != nil {
		return Answer{}, wire.Errorf(wire.Unavailable, "the backend that decides cannot be asked; try again later")
	}
	if outcome == Allowed {
		return a, nil
	}
	refusal := "connect: not allowed"
	if q.Hook == Subscribe {
		refusal = "channel " + q.Channel + ": not allowed to subscribe"
	}
	if a.Reason != "" {
		refusal += ": " + a.Reason
	}
	return a, wire.Errorf(wire.Forbidden, "%s", refusal)
}

// logChange logs the first of several failures, and the first success after them.
func (c *Calls) logChange(kind Kind, outcome Outcome, err error) {
	failing := &c.failing.connect
	if kind == Subscribe {
		failing = &c.failing.subscribe
	}
	switch failed := err != nil; {
	case !changed(failing, failed):
	case failed:
		c.log.Warn().Err(err).Str("hook", string(kind)).Str("outcome", string(outcome)).
			Msg("the hook gives no answer; all clients that need one are refused")
	default:
		c.log.Info().Str("hook", string(kind)).Msg("the hook answers again")
	}
}

// changed sets failing to failed, and reports whether it was another value. A call whose outcome is
// that of the last one writes nothing.
func changed(failing *atomic.Bool, failed bool) bool {
	return failing.Load() != failed && failing.Swap(failed) != failed
}

// Wait waits for the calls under way.
func (c *Calls) Wait() {
	if c != nil {
		c.Pool.Wait()
	}
}

// Close closes the connections to the backend.
func (c *Calls) Close() {
	if c != nil {
		c.hooks.Close()
	}
}
