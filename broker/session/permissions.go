package session

import (
	"slices"
	"strings"
	"time"

	"switchboard/broker/hub"
	"switchboard/broker/namespace"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// checkChannel checks the name of a channel that a client may use.
func checkChannel(req wire.Request) error {
	if err := wire.CheckName("channel", req.Channel); err != nil {
		return err
	}
	if wire.IsSystem(req.Channel) {
		return wire.Errorf(wire.Forbidden, "channel %s: it is the system's own", req.Channel)
	}
	return nil
}

// checkAllowed returns nil if the client may do that on the channel, else a *wire.Error with the
// reason.
func (s *Session) checkAllowed(do namespace.Action, channel string) error {
	set, who := s.m.opts.Access.Namespaces(), s.subject()
	if set.Allows(who, do, channel) {
		return nil
	}
	_, why := set.Decide(who, do, channel)
	s.m.opts.Metrics.Refused(do.String())
	return wire.Errorf(wire.Forbidden, "channel %s: not allowed to %s: %s", channel, verbs[do], why)
}

var verbs = map[namespace.Action]string{
	namespace.Subscribe: "subscribe", namespace.Publish: "publish",
	namespace.Presence: "see who is there", namespace.History: "see its history",
}

// checkSubscribe checks whether the client may subscribe, and watch the presence if it asks for
// that.
func (s *Session) checkSubscribe(req wire.Request) error {
	if err := checkChannel(req); err != nil {
		return err
	}
	if err := s.checkAllowed(namespace.Subscribe, req.Channel); err != nil || !req.Presence {
		return err
	}
	return s.checkAllowed(namespace.Presence, req.Channel)
}

// recheck ends the subscriptions and watches that a new token or new access rules do not allow.
func (s *Session) recheck() {
	for _, w := range slices.Clone(s.watches()) {
		if user, ok := strings.CutPrefix(w.channel, wire.UserChannel); ok && !s.m.opts.Access.Namespaces().MayFollow(s.subject(), user) {
			s.stopWatch(s.watches().index(w.channel))
			s.send(wire.Event{Type: wire.TypeUnsubscribed, Channel: w.channel, Code: string(wire.Forbidden), Message: "channel " + w.channel + ": not allowed to subscribe"})
			if s.state != open {
				return
			}
		} else if !ok && s.checkAllowed(namespace.Presence, w.channel) != nil {
			s.stopWatch(s.watches().index(w.channel)) // the subscription to the channel's messages stays
		}
	}
	for _, sub := range slices.Collect(s.subs()) {
		name := sub.Channel.Name
		if wire.IsSystem(name) {
			continue
		}
		err := s.checkAllowed(namespace.Subscribe, name)
		if err == nil || s.state != open { // a write may have ended the session
			continue
		}
		s.endSubscription(sub)
		refusal := s.m.refusal(err)
		s.send(wire.Event{Type: wire.TypeUnsubscribed, Channel: name, Code: string(refusal.Code), Message: refusal.Message})
	}
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

// resumeWindow is how far back a client without the history right can resume. It covers a tunnel or
// a deploy, but does not let the client read messages from before it was admitted.
const resumeWindow = 5 * time.Minute

// needsHistoryRight returns whether a subscription from after could show messages that the client
// may only read with the history right, which it does not have.
func (m *Manager) needsHistoryRight(who namespace.Subject, channel string, after *int64) bool {
	if after == nil || *after >= queue.IDAt(time.Now().Add(-resumeWindow)) {
		return false
	}
	return !m.opts.Access.Namespaces().Allows(who, namespace.History, channel)
}

// acquireRecent is hub.Acquire for a client that may not see messages older than resumeWindow. If
// the first message after the given id is older, the subscription begins at the present, and its
// position says that it did not recover the missed messages.
func (m *Manager) acquireRecent(channel string, after *int64) (hub.Position, error) {
	ctx := m.storeContext()
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
