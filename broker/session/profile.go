package session

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"switchboard/broker/hub"
	"switchboard/broker/limit"
	"switchboard/broker/namespace"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// pass is what a token gives besides the name of the user and its own end, and what the client has used of it. Who has no
// info and no grants, and publishes nowhere at a limited rate, has none.
type pass struct {
	info   json.RawMessage
	grants namespace.Grants
	paces  map[*namespace.Rule]limit.Bucket // of the namespaces that the client publishes to, if they limit the rate
}

func (s *Session) pass() *pass {
	if s.extra == nil {
		return nil
	}
	return s.extra.pass
}

// admit gives the session what its token says. What was used before counts on.
func (s *Session) admit(id Identity) {
	s.expires = 0
	if !id.Expires.IsZero() {
		s.expires = uint32(min(max(1, id.Expires.Unix()), math.MaxUint32)) // up to the year 2106
	}
	s.look(s.due(s.m.now.Load(), time.Now().Unix()))
	next := pass{info: id.Info, grants: id.Grants}
	if before := s.pass(); before != nil {
		next.paces = before.paces
	}
	switch {
	case next.info != nil || !next.grants.Empty() || next.paces != nil:
		s.need().pass = &next
	case s.extra != nil:
		s.extra.pass = nil
		s.spare()
	}
}

// may says whether the client may do that on the channel, as a *wire.Error that tells why not.
func (s *Session) may(do namespace.Action, channel string) error {
	set, who := s.m.opts.Access.Namespaces(), s.subject()
	if set.Allows(who, do, channel) {
		return nil
	}
	_, why := set.Decide(who, do, channel)
	s.m.opts.Metrics.Refused(do.String())
	return wire.Errorf(wire.Forbidden, "channel %s: not allowed to %s: %s", channel, verbs[do], why)
}

// subject is who the client is to the namespaces.
func (s *Session) subject() namespace.Subject {
	who := namespace.Subject{User: s.user()}
	if p := s.pass(); p != nil {
		who.Grants = p.grants
	}
	return who
}

var verbs = map[namespace.Action]string{
	namespace.Subscribe: "subscribe", namespace.Publish: "publish",
	namespace.Presence: "see who is there", namespace.History: "see its history",
}

// pace takes one message of the rate that the namespace of the channel allows.
func (s *Session) pace(r *namespace.Rule, channel string) error {
	if r == nil || r.PublishRate == 0 {
		return nil
	}
	e := s.need()
	if e.pass == nil {
		e.pass = new(pass)
	}
	if e.pass.paces == nil {
		e.pass.paces = make(map[*namespace.Rule]limit.Bucket)
	}
	bucket := e.pass.paces[r]
	wait := bucket.Take(limit.New(r.PublishRate, r.Burst()), 1, s.m.since())
	e.pass.paces[r] = bucket
	if wait == 0 {
		return nil
	}
	s.m.opts.Metrics.Refused("publish_rate")
	return wire.Errorf(wire.RateLimited, "channel %s: more than %g messages a second", channel, r.PublishRate)
}

// recheck ends the subscriptions that are not allowed any more, by a new token or by new namespaces.
func (s *Session) recheck() {
	for _, t := range slices.Clone(s.followed()) {
		if user, ok := strings.CutPrefix(t.channel, wire.UserChannel); ok && !s.m.opts.Access.Namespaces().MayFollow(s.subject(), user) {
			s.untold(s.followedAt(t.channel))
			s.send(wire.Event{Type: wire.TypeUnsubscribed, Channel: t.channel, Code: string(wire.Forbidden), Message: "channel " + t.channel + ": not allowed to subscribe"})
			if s.state != open {
				return
			}
		} else if !ok && s.may(namespace.Presence, t.channel) != nil {
			s.untold(s.followedAt(t.channel)) // the subscription goes on without
		}
	}
	for _, sub := range slices.Collect(s.subs()) {
		name := sub.Channel.Name
		if wire.IsSystem(name) {
			continue
		}
		err := s.may(namespace.Subscribe, name)
		if err == nil || s.state != open { // a write may have ended it
			continue
		}
		s.unfollow(sub)
		refusal := s.m.refusal(err)
		s.send(wire.Event{Type: wire.TypeUnsubscribed, Channel: name, Code: string(refusal.Code), Message: refusal.Message})
	}
}

// Recheck applies namespaces that are new to what is subscribed already.
func (m *Manager) Recheck() {
	m.each(func(s *Session) {
		if p := s.pass(); p != nil {
			p.paces = nil // of rules that are no more
		}
		s.recheck()
	})
}

// resumeWindow is how far back who may not see a channel's history can still resume: long enough for a tunnel or
// a deploy, and no way to read what was said before one was let in.
const resumeWindow = 5 * time.Minute

// prying says whether a subscription from after would show what only the history may.
func (m *Manager) prying(who namespace.Subject, channel string, after *int64) bool {
	if after == nil || *after >= queue.IDAt(time.Now().Add(-resumeWindow)) {
		return false
	}
	return !m.opts.Access.Namespaces().Allows(who, namespace.History, channel)
}

// acquireRecent is hub.Acquire for who must not look further back than resumeWindow: where something older lies behind
// after it begins now, and says that the missed messages do not follow.
func (m *Manager) acquireRecent(channel string, after *int64) (hub.Position, error) {
	ctx, cancel := m.context()
	defer cancel()
	page, err := m.opts.Queue.ReadChannel(ctx, channel, *after, 1)
	if err != nil {
		return hub.Position{}, err
	}
	if page.Complete && (len(page.Messages) == 0 || page.Messages[0].ID >= queue.IDAt(time.Now().Add(-resumeWindow))) {
		return m.opts.Hub.Acquire(ctx, channel, after)
	}
	pos, err := m.opts.Hub.Acquire(ctx, channel, nil)
	pos.Recovered = false
	return pos, err
}
