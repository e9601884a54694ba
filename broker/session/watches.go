package session

import (
	"slices"

	"switchboard/broker/hook"
	"switchboard/broker/presence"
	"switchboard/internal/meter"
	"switchboard/internal/wire"
)

// watch is one channel, or one user, whose joins and leaves the session receives. Only the
// session's loop uses it.
type watch struct {
	channel string // of a user, its system channel
	sub     *presence.Subscription
}

// watchList holds the watches of a session. Only the session's loop uses it.
type watchList []watch

// index returns the index of the watch of a channel, or -1.
func (l watchList) index(channel string) int {
	return slices.IndexFunc(l, func(w watch) bool { return w.channel == channel })
}

// watches returns the session's watches.
func (s *Session) watches() watchList {
	if s.extra == nil {
		return nil
	}
	return s.extra.watches
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

// watchUser begins to watch a user's presence. It handles a subscribe to the user's system channel.
func (s *Session) watchUser(req wire.Request, user string) {
	p := s.m.opts.Presence
	err := s.permissions().checkWatchUser(req.Channel, user)
	switch {
	case err != nil:
	case p == nil:
		err = notWatchable(req.Channel)
	case s.watches().index(req.Channel) >= 0:
		s.send(wire.Event{Type: wire.TypeSubscribed, Ref: req.Ref, Channel: req.Channel})
		return
	case s.subs().count()+len(s.watches()) >= s.m.opts.Limits.Channels:
		err = tooManyChannels(&s.m.opts.Limits, req.Channel)
	}
	if err != nil {
		s.refuse(req.Ref, err)
		return
	}
	q := s.question(s.m.opts.Hooks.Subscribe, hook.Subscribe, req.Channel)
	callIn(s.m.opts.poolFor(q), s, weight(req), func(read *meter.Meter) (*presence.UserView, error) {
		if err := s.m.opts.Hooks.askSubscribe(q); err != nil {
			return nil, err
		}
		return p.WatchUser(s.m.meteredContext(read), user)
	}, func(v *presence.UserView, err error) {
		var forbidden error
		if err == nil && s.state != closed {
			forbidden = s.permissions().checkWatchUser(req.Channel, user) // the access rules may have changed meanwhile
		}
		switch {
		case err != nil && s.state != closed:
			s.refuse(req.Ref, err)
		case err != nil:
		case s.state == closed:
			p.ReleaseUser(v)
		case forbidden != nil:
			p.ReleaseUser(v)
			s.refuse(req.Ref, forbidden)
		default:
			s.send(wire.Event{Type: wire.TypeSubscribed, Ref: req.Ref, Channel: req.Channel})
			if s.state == closed {
				p.ReleaseUser(v)
				return
			}
			s.startWatch(req.Channel, v.Subscribe(s.shard.loop, s))
		}
	})
}
