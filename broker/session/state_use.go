package session

import (
	"slices"

	"switchboard/broker/hub"
)

// stateUse holds the unwritten pages and the ownerships of a session. Most sessions have none and
// take no memory for it: the shard keeps the stateUses in a map. Only the session's loop uses it.
type stateUse struct {
	pages []*pageSeries
	owned []*ownership
}

// stateUse returns the session's stateUse, or nil.
func (s *Session) stateUse() *stateUse { return s.shard.states[s] }

// ensureStateUse returns the session's stateUse. It creates one if there is none.
func (s *Session) ensureStateUse() *stateUse {
	u := s.stateUse()
	if u == nil {
		if s.shard.states == nil {
			s.shard.states = make(map[*Session]*stateUse)
		}
		u = new(stateUse)
		s.shard.states[s] = u
	}
	return u
}

// dropEmptyStateUse drops the session's stateUse if it is empty.
func (s *Session) dropEmptyStateUse() {
	if u := s.stateUse(); u != nil && len(u.pages)+len(u.owned) == 0 {
		delete(s.shard.states, s)
	}
	if len(s.shard.states) == 0 {
		s.shard.states = nil
	}
}

// endStateUse drops the unwritten pages and ends all ownerships, because the session ends.
func (s *Session) endStateUse() {
	u := s.stateUse()
	if u == nil {
		return
	}
	owned := u.owned
	for _, p := range u.pages {
		s.releasePages(p)
	}
	u.owned, u.pages = nil, nil
	s.dropEmptyStateUse()
	for _, o := range owned {
		s.m.owners.sessionEnded(o)
	}
}

// stateSubscription returns the subscription to a channel with its state, or nil.
func (s *Session) stateSubscription(channel string) *hub.Subscription {
	if sub := s.subs().find(channel); sub != nil && sub.Filter().State {
		return sub
	}
	return nil
}

// ownership returns the session's ownership of fields of a channel, or nil.
func (s *Session) ownership(channel string) *ownership {
	if u := s.stateUse(); u != nil {
		if i := slices.IndexFunc(u.owned, func(o *ownership) bool { return o.channel == channel }); i >= 0 {
			return u.owned[i]
		}
	}
	return nil
}

// ensureOwnership returns the session's ownership of fields of a channel. It creates one if there
// is none.
func (s *Session) ensureOwnership(channel string) *ownership {
	if o := s.ownership(channel); o != nil {
		return o
	}
	o := &ownership{
		session: s, channel: channel, client: s.client, generation: s.generation, release: s.m.opts.Hub.Hold(channel),
	}
	u := s.ensureStateUse()
	u.owned = append(u.owned, o)
	return o
}

// dropUnusedOwnership drops an ownership if the client owns nothing.
func (s *Session) dropUnusedOwnership(o *ownership) {
	u := s.stateUse()
	if u == nil || !o.isUnused() {
		return
	}
	if i := slices.Index(u.owned, o); i >= 0 {
		u.owned = slices.Delete(u.owned, i, i+1)
		o.release()
		s.dropEmptyStateUse()
	}
}
