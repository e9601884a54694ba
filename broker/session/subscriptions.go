package session

import (
	"iter"
	"slices"

	"switchboard/broker/hub"
	"switchboard/broker/presence"
	"switchboard/internal/wire"
	"switchboard/registry"
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

// member returns the session as the presence shows it to others.
func (s *Session) member() registry.Member {
	m := registry.Member{Client: s.client, User: s.user(), Generation: s.generation}
	if p := s.profile(); p != nil {
		m.Info = p.info
	}
	return m
}

// joinPresence makes the session a member of the channel, if the channel has presence. In a channel
// that shows aliases, only users can be members.
func (s *Session) joinPresence(sub *hub.Subscription) {
	if s.m.opts.Presence == nil {
		return
	}
	channel := sub.Channel.Name
	switch r := s.m.opts.Access.Namespaces().For(channel); {
	case r == nil || r.NoPresence:
	case r.By == "":
		s.m.opts.Presence.Join(channel, s.member())
	case s.user() != "":
		s.m.opts.Presence.JoinAs(channel, r.ByField(s.user()), s.member())
	}
}

// hasPresence returns whether the current access rules track the presence of a channel. The $all
// channel never has presence; the caller excludes it.
func (a *Access) hasPresence(channel string) bool {
	r := a.Namespaces().For(channel)
	return r != nil && !r.NoPresence
}

// leavePresence undoes joinPresence. It does not call hasPresence: the access rules may have
// changed since the join.
func (s *Session) leavePresence(sub *hub.Subscription) {
	if s.m.opts.Presence != nil && sub != &s.allSub {
		s.m.opts.Presence.Leave(sub.Channel.Name, s.client, s.generation)
	}
}

// stateSubscription returns the subscription to a channel with its state, or nil.
func (s *Session) stateSubscription(channel string) *hub.Subscription {
	if sub := s.subs().find(channel); sub != nil && sub.Filter().State {
		return sub
	}
	return nil
}

// checkChannelCount checks that the connection may have one channel more.
func (s *Session) checkChannelCount(channel string) error {
	if s.subs().count() < s.m.opts.Limits.Channels {
		return nil
	}
	s.m.opts.Metrics.Refused("channels")
	return tooManyChannels(&s.m.opts.Limits, channel)
}

// tooManyChannels returns the refusal of a subscribe beyond Limits.Channels. Waiting does not help:
// the client must unsubscribe from another channel.
func tooManyChannels(l *Limits, channel string) error {
	err := wire.Errorf(wire.RateLimited, "channel %s: the connection has %d channels, at most that many are allowed (limits.channels)",
		channel, l.Channels)
	err.Final = true
	return err
}

// startWatch begins a watch.
func (s *Session) startWatch(channel string, sub *presence.Subscription) {
	e := s.ensureExtra()
	e.watches = append(e.watches, watch{channel, sub})
	sub.Start()
}

// stopWatch ends the watch at an index.
func (s *Session) stopWatch(i int) {
	s.extra.watches[i].sub.Close()
	s.extra.watches = slices.Delete(s.extra.watches, i, i+1)
	s.dropEmptyExtra()
}

// Client implements presence.Watcher.
func (s *Session) Client() string { return s.client }
