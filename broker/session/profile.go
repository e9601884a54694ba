package session

import (
	"encoding/json"
	"math"
	"time"

	"switchboard/broker/limit"
	"switchboard/broker/namespace"
	"switchboard/registry"
)

// profile holds the info and the grants of a session's Identity, the subscriptions that the backend
// has made, and how much of the publish rates the session has used. A session without all of these
// has none. Only the session's loop uses it.
type profile struct {
	info      json.RawMessage
	grants    namespace.Grants
	publishes map[*namespace.Rule]limit.Bucket // of the namespaces that limit the publish rate
	backend   *backendSubs                     // nil for none
	reading   *listRead                        // nil for none
}

// profile returns the session's profile, or nil.
func (s *Session) profile() *profile {
	if s.extra == nil {
		return nil
	}
	return s.extra.profile
}

// setIdentity applies a verified identity, at connect and after each refresh. The use of publish
// rates carries over. lists and since are of a connect, see nextBackendSubs.
func (s *Session) setIdentity(identity Identity, lists registry.Subscriptions, since int64) {
	s.expires = 0
	if s.user() != "" {
		s.credential.setIssued(identity.Issued)
	}
	if !identity.Expires.IsZero() {
		s.expires = uint32(min(max(1, identity.Expires.Unix()), math.MaxUint32)) // enough until the year 2106
	}
	s.shard.checkBy(s, s.shard.nextCheck(s, s.m.currentTick.Load(), time.Now().Unix()))
	if s.profile() == nil && identity.plain() && lists.Empty() {
		return // without the allocation below
	}
	next := profile{info: identity.Info, grants: identity.Grants}
	if before := s.profile(); before != nil {
		next.publishes, next.reading = before.publishes, before.reading
	}
	if b := s.backendSubs(); b != nil {
		lists = b.lists
	}
	// Only a call of the backend ends subscriptions here. The lists are those that the session has.
	next.backend, _ = nextBackendSubs(s.backendSubs(), claimedSubs{identity.Subscribe, identity.Issued}, lists, since)
	if !next.empty() || s.extra != nil {
		s.ensureExtra().profile = &next
		s.dropEmptyProfile()
	}
}

// plain returns whether an identity needs no profile.
func (i *Identity) plain() bool {
	return i.Info == nil && i.Grants.Empty() && len(i.Subscribe) == 0
}

// empty returns whether a session needs no profile.
func (p *profile) empty() bool {
	return p.info == nil && p.grants.Empty() && p.publishes == nil && p.backend == nil && p.reading == nil
}

// dropEmptyProfile drops a profile that the session does not need.
func (s *Session) dropEmptyProfile() {
	if p := s.profile(); p != nil && p.empty() {
		s.extra.profile = nil
	}
	s.dropEmptyExtra()
}

// takePublish takes one message from the publish rate of a channel's namespace.
func (s *Session) takePublish(r *namespace.Rule, channel string) error {
	if r == nil || r.PublishRate == 0 {
		return nil
	}
	e := s.ensureExtra()
	if e.profile == nil {
		e.profile = new(profile)
	}
	if e.profile.publishes == nil {
		e.profile.publishes = make(map[*namespace.Rule]limit.Bucket)
	}
	bucket := e.profile.publishes[r]
	wait := bucket.Take(limit.New(r.PublishRate, r.Burst()), 1, s.m.rates.now())
	e.profile.publishes[r] = bucket
	if wait == 0 {
		return nil
	}
	s.m.opts.Metrics.Refused("publish_rate")
	return rateLimited(wait, "channel %s: more than %g messages a second (publish_rate)", channel, r.PublishRate)
}
