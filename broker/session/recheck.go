package session

import (
	"slices"
	"strings"

	"switchboard/broker/namespace"
	"switchboard/internal/wire"
)

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

// sendUnsubscribed sends `unsubscribed` with the reason for which a subscription or watch ended.
func (s *Session) sendUnsubscribed(channel string, why *wire.Error) {
	s.send(wire.Event{Type: wire.TypeUnsubscribed, Channel: channel, Code: string(why.Code), Message: why.Message})
}
