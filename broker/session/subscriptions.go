package session

import (
	"iter"
	"slices"

	"switchboard/broker/hub"
)

// subs iterates over the subscriptions, the one to the $all channel first.
func (s *Session) subs() iter.Seq[*hub.Subscription] {
	return func(yield func(*hub.Subscription) bool) {
		if s.allSub.Active() && !yield(&s.allSub) || s.firstSub.Active() && !yield(&s.firstSub) {
			return
		}
		for i := 0; s.extra != nil && i < len(s.extra.moreSubs); i++ { // the caller may end the session
			if !yield(s.extra.moreSubs[i]) {
				return
			}
		}
	}
}

// subscription returns the subscription to a channel, or nil.
func (s *Session) subscription(channel string) *hub.Subscription {
	for sub := range s.subs() {
		if sub.Channel.Name == channel {
			return sub
		}
	}
	return nil
}

// channelCount returns the number of subscriptions without the one to the $all channel.
func (s *Session) channelCount() (n int) {
	for range s.subs() {
		n++
	}
	if s.allSub.Active() {
		n--
	}
	return n
}

// vacantSubscription returns a place for the next subscription.
func (s *Session) vacantSubscription() *hub.Subscription {
	if s.firstSub.Reusable() {
		return &s.firstSub
	}
	sub, e := new(hub.Subscription), s.ensureExtra()
	e.moreSubs = append(e.moreSubs, sub)
	return sub
}

// startSubscription begins a subscription at pos in sub. `subscribed` was sent before.
func (s *Session) startSubscription(sub *hub.Subscription, pos hub.Position) {
	s.m.opts.Hub.Subscribe(sub, s.shard.loop, s, pos)
	s.joinPresence(sub)
	sub.Start()
}

// endSubscription ends a subscription and the watch of its channel.
func (s *Session) endSubscription(sub *hub.Subscription) {
	if i := s.watches().index(sub.Channel.Name); i >= 0 {
		s.stopWatch(i)
	}
	s.leavePresence(sub)
	s.m.opts.Hub.Unsubscribe(sub)
	if e := s.extra; e != nil {
		e.moreSubs = slices.DeleteFunc(e.moreSubs, func(other *hub.Subscription) bool { return other == sub })
		s.dropEmptyExtra()
	}
}
