package session

import (
	"context"

	"switchboard/internal/wire"
)

// Authorizer decides whether a client that the access rules allow may subscribe to a channel. user
// is "" for a client without one. An error of type *wire.Error goes to the client; any other error
// means that the decision is not known.
type Authorizer func(ctx context.Context, client, user, channel string) error

// authorizer returns the authorizer of a channel, or nil.
func (s *Session) authorizer(channel string) Authorizer {
	if s.m.opts.Authorizer == nil {
		return nil
	}
	return s.m.opts.Authorizer(channel)
}

// checkSubscribed refuses to read or publish in a channel that has an authorizer if the client is
// not subscribed: only a subscribe asks the authorizer.
func (s *Session) checkSubscribed(channel string) error {
	if s.authorizer(channel) == nil || s.subs().find(channel) != nil {
		return nil
	}
	return wire.Errorf(wire.Forbidden, "channel %s: not subscribed", channel)
}

// Unsubscribe ends the client's subscription to a channel, and the ownership of its fields there.
// The client receives why. Unsubscribe returns false if the client has no session here.
func (m *Manager) Unsubscribe(client, channel string, why *wire.Error) bool {
	return m.onLoop(client, func(s *Session) { s.endFor(channel, why) })
}

// endFor ends a subscription, if there is one, and the ownership of fields in the channel. The
// client receives why.
func (s *Session) endFor(channel string, why *wire.Error) {
	sub := s.subs().find(channel)
	if sub == nil || s.state != open {
		return
	}
	s.endSubscription(sub)
	s.unsubscribeOwner(channel)
	s.sendUnsubscribed(channel, why)
}
