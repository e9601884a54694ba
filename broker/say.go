package broker

import (
	"context"
	"errors"

	"switchboard/broker/hook"
	"switchboard/broker/session"
	"switchboard/internal/wire"
)

// say is what sessions ask of the backend.
func (b *Broker) say() session.Hooks {
	say := session.Hooks{Pool: b.asking}
	if b.hooks == nil {
		return say
	}
	if b.hooks.Asks(hook.Connect) {
		say.Connect = b.ask
	}
	if b.hooks.Asks(hook.Subscribe) {
		say.Subscribe = b.ask
	}
	return say
}

// ask fails closed: who cannot be asked allows nothing, and the client is told to come back.
func (b *Broker) ask(ctx context.Context, q hook.Question) (hook.Answer, error) {
	a, outcome, err := b.hooks.Ask(ctx, q)
	if a.User != "" && a.User != q.User && !b.opts.Tokens.Open() {
		outcome, err = hook.Malformed, errors.New("the answer has another user than the token, which alone says who somebody is")
	}
	mute := &b.mute.connect
	if q.Hook == hook.Subscribe {
		mute = &b.mute.subscribe
	}
	b.metrics.hooks.WithLabelValues(string(q.Hook), string(outcome)).Inc()
	if err != nil {
		if !mute.Swap(true) { // of a row of failures the first is told
			b.opts.Logger.Warn().Err(err).Str("hook", string(q.Hook)).Str("outcome", string(outcome)).
				Msg("the backend does not say who may come in; nobody may until it does")
		}
		return hook.Answer{}, wire.Errorf(wire.Unavailable, "the backend that decides cannot be asked; try again later")
	}
	if mute.Load() && mute.Swap(false) {
		b.opts.Logger.Info().Str("hook", string(q.Hook)).Msg("the backend answers again")
	}
	if outcome == hook.Allowed {
		return a, nil
	}
	what := "connect: not allowed"
	if q.Hook == hook.Subscribe {
		what = "channel " + q.Channel + ": not allowed to subscribe"
	}
	if a.Reason != "" {
		what += ": " + a.Reason
	}
	return a, wire.Errorf(wire.Forbidden, "%s", what)
}
