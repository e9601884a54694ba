package session

import (
	"iter"
	"slices"

	"switchboard/broker/hub"
)

// subs are the subscriptions, everyone's channel first.
func (s *Session) subs() iter.Seq[*hub.Subscription] {
	return func(yield func(*hub.Subscription) bool) {
		if s.all.Active() && !yield(&s.all) || s.first.Active() && !yield(&s.first) {
			return
		}
		for i := 0; s.extra != nil && i < len(s.extra.more); i++ { // one may end the session
			if !yield(s.extra.more[i]) {
				return
			}
		}
	}
}

// subscribed is the subscription to a channel, or nil.
func (s *Session) subscribed(channel string) *hub.Subscription {
	for sub := range s.subs() {
		if sub.Channel.Name == channel {
			return sub
		}
	}
	return nil
}

// channels is how many the session follows, without everyone's.
func (s *Session) channels() (n int) {
	for range s.subs() {
		n++
	}
	if s.all.Active() {
		n--
	}
	return n
}

// place is where the next subscription is to be kept.
func (s *Session) place() *hub.Subscription {
	if s.first.Reusable() {
		return &s.first
	}
	sub, e := new(hub.Subscription), s.need()
	e.more = append(e.more, sub)
	return sub
}

// follow begins a subscription at pos in sub. The client has been told.
func (s *Session) follow(sub *hub.Subscription, pos hub.Position) {
	s.m.opts.Hub.Subscribe(sub, s.shard.loop, s, pos)
	s.comeIn(sub)
	sub.Start()
}

// unfollow ends a subscription.
func (s *Session) unfollow(sub *hub.Subscription) {
	if i := s.followedAt(sub.Channel.Name); i >= 0 {
		s.untold(i)
	}
	s.goOut(sub)
	s.m.opts.Hub.Unsubscribe(sub)
	if e := s.extra; e != nil {
		e.more = slices.DeleteFunc(e.more, func(other *hub.Subscription) bool { return other == sub })
		s.spare()
	}
}
