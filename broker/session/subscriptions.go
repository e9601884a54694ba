package session

import (
	"iter"
	"slices"

	"switchboard/broker/hub"
	"switchboard/internal/wire"
)

// subscriptions iterates over the subscriptions of a session, the one to the $all channel first.
// Only the session's loop uses it. The caller may end the session during the iteration.
type subscriptions iter.Seq[*hub.Subscription]

// subs returns the session's subscriptions.
func (s *Session) subs() subscriptions {
	return func(yield func(*hub.Subscription) bool) {
		if s.allSub.Active() && !yield(&s.allSub) || s.firstSub.Active() && !yield(&s.firstSub) {
			return
		}
		for i := 0; s.extra != nil && i < len(s.extra.moreSubs); i++ {
			if !yield(s.extra.moreSubs[i]) {
				return
			}
		}
	}
}

// list returns the subscriptions as a list. The caller may end some of them during an iteration.
func (l subscriptions) list() []*hub.Subscription {
	return slices.Collect(iter.Seq[*hub.Subscription](l))
}

// find returns the subscription to a channel, or nil.
func (l subscriptions) find(channel string) *hub.Subscription {
	for sub := range l {
		if sub.Channel.Name == channel {
			return sub
		}
	}
	return nil
}

// count returns the number of subscriptions without the one to the $all channel.
func (l subscriptions) count() (n int) {
	for sub := range l {
		if sub.Channel.Name != wire.AllChannel {
			n++
		}
	}
	return n
}

// unusedSubscription returns a hub.Subscription for the next subscription: firstSub if it is not
// used, or a new one.
func (s *Session) unusedSubscription() *hub.Subscription {
	if s.firstSub.Reusable() {
		return &s.firstSub
	}
	sub, e := new(hub.Subscription), s.ensureExtra()
	e.moreSubs = append(e.moreSubs, sub)
	return sub
}

// endSubscription ends a subscription and the watch of its channel.
func (s *Session) endSubscription(sub *hub.Subscription) {
	if i := s.watches().index(sub.Channel.Name); i >= 0 {
		s.stopWatch(i)
	}
	s.leavePresence(sub)
	s.m.opts.Hub.Unsubscribe(sub)
	s.dropPages(sub)
	s.forgetSubscription(sub)
}

// forgetSubscription removes a subscription that is not active from the list.
func (s *Session) forgetSubscription(sub *hub.Subscription) {
	if e := s.extra; e != nil {
		e.moreSubs = slices.DeleteFunc(e.moreSubs, func(other *hub.Subscription) bool { return other == sub })
		s.dropEmptyExtra()
	}
}
