package session

import (
	"strings"

	"switchboard/broker/hook"
	"switchboard/broker/hub"
	"switchboard/broker/presence"
	"switchboard/internal/meter"
	"switchboard/internal/wire"
)

// subscribe begins a subscription to a channel, or to a user's presence.
func (s *Session) subscribe(req wire.Request) {
	if user, ok := strings.CutPrefix(req.Channel, wire.UserChannelPrefix); ok {
		s.watchUser(req, user)
		return
	}
	resumes := req.After != nil && *req.After != 0
	req.After = s.m.opts.Hub.ResumeCursor(req.After)
	allowed := s.permissions()
	err := allowed.checkSubscribe(req)
	if err == nil {
		err = s.rejoin(req.Channel, resumes)
	}
	if err != nil {
		s.refuse(req.Ref, err)
		return
	}
	adopted := s.adoptBackendSub(req.Channel)
	if sub := s.subs().find(req.Channel); sub != nil {
		if !adopted || req.After == nil {
			s.resubscribe(req, sub)
			return
		}
		s.endSubscription(sub) // the client continues from the position that it has
	}
	if err := s.checkChannelCount(req.Channel); err != nil {
		s.refuse(req.Ref, err)
		return
	}
	if s.m.senders != nil && s.m.opts.Hub.Channel(req.Channel) == nil {
		if wait := s.m.senders.TakeChannel(s.sender()); wait > 0 {
			s.m.opts.Metrics.Refused(newChannelsLimit)
			s.refuse(req.Ref, newChannelError(&s.m.opts, req.Channel, wait))
			return
		}
	}
	recentOnly := allowed.recentOnly(req.Channel, req.After)
	q := s.question(s.m.opts.Hooks.Subscribe, hook.Subscribe, req.Channel)
	authorize := s.authorizer(req.Channel)
	if !recentOnly && !req.Presence && q == nil && authorize == nil && s.trySubscribe(req) {
		return
	}
	s.subscribeLater(req, recentOnly, q, authorize)
}

// subscribeLater begins a subscription after calls in the pool. They keep req, which therefore is
// on the heap here, and not in subscribe: that would cost each subscribe 320 bytes.
func (s *Session) subscribeLater(req wire.Request, recentOnly bool, q *hook.Question, authorize Authorizer) {
	client, user := s.client, s.user()
	st := s.beginStateSubscribe(req)
	callIn(s.m.opts.poolFor(q), s, weight(req), func(read *meter.Meter) (acquired, error) {
		err := s.m.opts.Hooks.askSubscribe(q)
		if err == nil && authorize != nil {
			err = authorize(s.m.meteredContext(read), client, user, req.Channel)
		}
		var a acquired
		if err == nil {
			a, err = acquire(s.m.meteredContext(read), &s.m.opts, req, recentOnly)
		}
		if st != nil {
			a.series, err = s.m.prepareStateSubscribe(s.m.meteredContext(read), req, a.pos, st, err)
		}
		return a, err
	}, func(a acquired, err error) {
		if err == nil && s.state != closed {
			if err = s.permissions().checkSubscribe(req); err != nil { // the access rules have changed meanwhile
				s.unsubscribeOwner(req.Channel)
			}
		}
		if err == nil && s.state != closed {
			s.beginSubscription(req, a)
		} else {
			if s.state != closed {
				s.refuse(req.Ref, err)
			}
			a.release(&s.m.opts)
		}
		s.endStateSubscribe(st)
	})
}

// trySubscribe begins a subscription without a call to the store. It returns false if one is
// needed.
func (s *Session) trySubscribe(req wire.Request) bool {
	pos, ok := s.m.opts.Hub.TryAcquire(req.Channel, req.After)
	if !ok {
		return false
	}
	a := acquired{pos: pos}
	if selectorOf(req) != nil {
		if a.series, ok = s.tryPrepareState(req, pos); !ok {
			s.m.opts.Hub.Release(pos.Channel)
			return false
		}
	}
	s.beginSubscription(req, a)
	s.chargeRead(a.series.Bytes(), weight(req))
	return true
}

// beginSubscription answers subscribe with the position, and begins the subscription there.
func (s *Session) beginSubscription(req wire.Request, a acquired) {
	if selectorOf(req) != nil {
		s.beginStateSubscription(req, a)
		return
	}
	// The answer follows: a client that has it is counted.
	sub := s.unusedSubscription()
	s.m.opts.Hub.Subscribe(sub, s.shard.loop, s, a.pos)
	_ = sub.SetFilter(s.permissions().authorFilter(req.Channel)) // only a filter with the state is refused
	if s.sendPosition(req, a.pos); s.state != closed {
		s.joinPresence(sub)
		sub.Start()
	}
	s.beginWatch(req.Channel, a.view)
}

// resubscribe answers a subscribe to a channel that the connection is subscribed to. The
// subscription continues where it is, so a client may repeat a subscribe whose answer it did not
// see. The message's after is ignored: the connection has received the messages since then. The
// repeated subscribe may add a watch of the presence, and it may add the state or change its
// prefix.
func (s *Session) resubscribe(req wire.Request, sub *hub.Subscription) {
	if !req.Presence || s.m.opts.Presence == nil || s.watches().index(req.Channel) >= 0 {
		s.answerResubscribe(req, sub)
		return
	}
	call(s, weight(req), func(read *meter.Meter) (*presence.View, error) {
		return s.m.opts.Presence.Watch(s.m.meteredContext(read), req.Channel)
	}, func(v *presence.View, err error) {
		if err == nil && s.state != closed {
			err = s.permissions().checkSubscribe(req) // the access rules may have changed meanwhile
		}
		sub := s.subs().find(req.Channel)
		switch {
		case s.state == closed:
		case err != nil:
			s.refuse(req.Ref, err)
		case sub == nil: // new access rules have ended it, and sent the client `unsubscribed`
			s.refuse(req.Ref, wire.Errorf(wire.Forbidden, "channel %s: the subscription ended meanwhile", req.Channel))
		default:
			if s.answerResubscribe(req, sub); s.state != closed {
				s.startWatch(req.Channel, v.Subscribe(s.shard.loop, s))
				return
			}
		}
		if v != nil {
			s.m.opts.Presence.Release(v)
		}
	})
}

// answerResubscribe answers a repeated subscribe.
func (s *Session) answerResubscribe(req wire.Request, sub *hub.Subscription) {
	if selectorOf(req) == nil {
		s.sendSubscribed(req, sub)
		return
	}
	s.resubscribeState(req, sub)
}

// unsubscribe ends a subscription. The answer is the same if there is none, so that a client may
// repeat it.
func (s *Session) unsubscribe(req wire.Request) {
	if i := s.watches().index(req.Channel); i >= 0 && strings.HasPrefix(req.Channel, wire.UserChannelPrefix) {
		s.stopWatch(i)
		s.send(wire.Event{Type: wire.TypeUnsubscribed, Ref: req.Ref, Channel: req.Channel})
		return
	}
	if err := checkUnsubscribe(req); err != nil {
		s.refuse(req.Ref, err)
		return
	}
	if sub := s.subs().find(req.Channel); sub != nil {
		s.endSubscription(sub)
	}
	answer := wire.Event{Type: wire.TypeUnsubscribed, Ref: req.Ref, Channel: req.Channel}
	o := s.ownership(req.Channel)
	if o == nil {
		s.send(answer)
		return
	}
	o.unsubscribe()
	call(s, weight(req), func(read *meter.Meter) (struct{}, error) {
		s.m.owners.storeOrRetry(s.m.meteredContext(read), o)
		return struct{}{}, nil
	}, func(struct{}, error) { s.answer(answer, nil) })
}

// checkUnsubscribe checks the name of a channel, or of a user's presence.
func checkUnsubscribe(req wire.Request) error {
	if user, ok := strings.CutPrefix(req.Channel, wire.UserChannelPrefix); ok {
		return wire.CheckName("user", user)
	}
	return checkChannel(req)
}
