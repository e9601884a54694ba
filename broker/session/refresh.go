package session

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"switchboard/broker/hook"
	"switchboard/broker/namespace"
	"switchboard/internal/wire"
	"switchboard/registry"
)

// refresh replaces the client's token by a new one of the same user. It ends the subscriptions that
// the new token does not allow.
func (s *Session) refresh(req wire.Request) {
	if s.m.opts.Access.Verify == nil {
		s.refuse(req.Ref, wire.Errorf(wire.BadRequest, "refresh: this broker takes no tokens"))
		return
	}
	q := s.question(s.m.opts.Hooks.Connect, hook.Connect, "")
	client, user, revocations := s.client, s.user(), s.m.revocations.Load()
	callUncharged(s.m.opts.poolFor(q), s, func() (Identity, error) {
		verified, err := s.m.opts.Access.identify(req)
		if err != nil || verified.User != user { // a token of another user is refused below
			return verified, err
		}
		if err := s.m.binder.CheckToken(s.m.storeContext(), client, verified.Issued); err != nil || q == nil {
			return verified, err
		}
		q.Refresh = true
		return s.m.opts.Hooks.askConnect(verified, new(atomic.Bool), q)
	}, func(identity Identity, err error) {
		switch {
		case s.state == closed:
		case err != nil:
			refusal := connectError(err)
			if e, ok := errors.AsType[*wire.Error](refusal); ok && e.Code == wire.Unauthorized {
				s.m.opts.Notify.Rejected(rejectionReason(req.Token, err), s.conn.RemoteAddr())
			}
			s.refuse(req.Ref, refusal)
		case identity.User != s.user():
			s.refuse(req.Ref, wire.Errorf(wire.Forbidden, "token: it is of user %s, the connection of %s", identity.User, s.user()))
		case identity.Client != "" && identity.Client != wire.ClientPart(s.client):
			s.refuse(req.Ref, wire.Errorf(wire.Forbidden, "token: it is of client %s, the connection of %s", identity.Client, s.client))
		default:
			s.setIdentity(identity, registry.Subscriptions{}, 0)
			s.send(wire.Event{Type: wire.TypeRefreshed, Ref: req.Ref})
			s.recheck()
			s.subscribeDue()
			if s.state == open && revocations != s.m.revocations.Load() { // Manager.Revoke has seen the former token
				s.shard.renewNow(s)
			}
		}
	})
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

// Recheck applies new access rules to all sessions.
func (m *Manager) Recheck() {
	m.each(func(s *Session) {
		if p := s.profile(); p != nil {
			p.publishes = nil // its keys are the old rules
		}
		s.recheck()
	})
}

// recheck ends the watches, the here values and the subscriptions that a new token or new access
// rules do not allow. It also adapts what the subscriptions show of states and authors.
func (s *Session) recheck() {
	current := s.permissions()
	for _, w := range slices.Clone(s.watches()) {
		user, ofUser := strings.CutPrefix(w.channel, wire.UserChannelPrefix)
		switch {
		case ofUser && current.checkWatchUser(w.channel, user) != nil:
			s.stopWatch(s.watches().index(w.channel))
			s.sendUnsubscribed(w.channel, notWatchable(w.channel))
			if s.state != open {
				return
			}
		case !ofUser && current.check(namespace.Presence, w.channel) != nil:
			s.stopWatch(s.watches().index(w.channel)) // the subscription to the channel's messages stays
		}
	}
	s.endForbiddenHere(current)
	for _, sub := range s.subs().list() {
		name := sub.Channel.Name
		if wire.IsSystem(name) {
			continue
		}
		err := current.check(namespace.Subscribe, name)
		if err == nil && s.state == open {
			err = s.recheckFilter(current, sub)
		}
		if err == nil || s.state != open { // a write may have ended the session
			continue
		}
		s.endSubscription(sub)
		s.unsubscribeOwner(name)
		s.sendUnsubscribed(name, s.m.refusal(err))
	}
}
