package session

import (
	"switchboard/broker/hub"
	"switchboard/broker/presence"
	"switchboard/internal/wire"
)

// subscribeAgain answers a subscribe to a channel that the connection follows already. The
// subscription goes on from where it is, so a client may repeat a subscribe whose answer it did not
// see. after has no meaning then: what followed it was sent on this connection. Presence can be
// added.
func (s *Session) subscribeAgain(req wire.Request, sub *hub.Subscription) {
	if !req.Presence || s.m.opts.Presence == nil || s.followedAt(req.Channel) >= 0 {
		s.subscribedAt(req, sub)
		return
	}
	call(s, func() (*presence.View, error) {
		ctx, cancel := s.m.context()
		defer cancel()
		return s.m.opts.Presence.Watch(ctx, req.Channel)
	}, func(v *presence.View, err error) {
		if err == nil && s.state != closed {
			err = s.mayEnter(req) // the namespaces may be others by now
		}
		sub := s.subscribed(req.Channel)
		switch {
		case s.state == closed:
		case err != nil:
			s.refuse(req.Ref, err)
		case sub == nil: // ended meanwhile by new namespaces, which also told the client
			s.refuse(req.Ref, wire.Errorf(wire.Forbidden, "channel %s: the subscription ended meanwhile", req.Channel))
		default:
			if s.subscribedAt(req, sub); s.state != closed {
				s.tellOf(req.Channel, v.Subscribe(s.shard.loop, s))
				return
			}
		}
		if v != nil {
			s.m.opts.Presence.Release(v)
		}
	})
}

// subscribedAt tells the position that a subscription has reached.
func (s *Session) subscribedAt(req wire.Request, sub *hub.Subscription) {
	id := sub.ResumeID()
	s.send(wire.Event{Type: wire.TypeSubscribed, Ref: req.Ref, Channel: req.Channel, ID: &id})
}
