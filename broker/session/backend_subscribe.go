package session

import (
	"slices"

	"switchboard/internal/meter"
	"switchboard/internal/wire"
)

// subscribeDue begins the subscriptions of the backend that are due, when the session is idle: a
// client that reconnects subscribes by itself with its positions, and these messages come first.
func (s *Session) subscribeDue() {
	if s.profile() == nil { // it has neither such subscriptions nor calls that wait
		return
	}
	for s.state == open && !s.busy && s.waiting() == 0 && !s.conn.Backlogged() {
		b := s.backendSubs()
		if b == nil || len(b.due) == 0 {
			s.endListWaits(false)
			return
		}
		next := b.due[0]
		b.due = b.due[1:]
		s.subscribeFor(next)
	}
}

// subscribeFor begins a subscription for the backend. The client receives `subscribed` without a
// ref. If the subscription is refused, it receives `unsubscribed` with the reason. If the store
// fails, the next tick tries again.
func (s *Session) subscribeFor(due dueSub) {
	req := wire.Request{Type: wire.TypeSubscribe, Channel: due.channel, After: s.m.opts.Hub.ResumeCursor(due.after)}
	if s.subs().find(req.Channel) != nil {
		return
	}
	if err := s.checkBackendSub(req); err != nil {
		s.refuseBackendSub(req.Channel, s.m.refusal(err))
		return
	}
	authorize := s.authorizer(req.Channel)
	if authorize == nil && s.trySubscribe(req) {
		return
	}
	client, user := s.client, s.user()
	callUncharged(s.m.opts.Pool, s, func() (a acquired, err error) {
		ctx := s.m.meteredContext(new(meter.Meter))
		if authorize != nil {
			err = authorize(ctx, client, user, req.Channel)
		}
		if err == nil {
			a, err = acquire(ctx, &s.m.opts, req, false)
		}
		return a, err
	}, func(a acquired, err error) {
		if err == nil && s.state != closed {
			err = s.checkBackendSub(req) // a new token or new access rules may have come meanwhile
		}
		switch {
		case s.state == closed:
		case err != nil:
			s.backendSubFailed(due, s.m.refusal(err))
		default:
			s.beginSubscription(req, a)
			return
		}
		a.release(&s.m.opts)
	})
}

// backendSubFailed handles the failure of a subscription for the backend.
func (s *Session) backendSubFailed(due dueSub, why *wire.Error) {
	if b := s.backendSubs(); b != nil && why.Code == wire.Unavailable && slices.Contains(b.channels, due.channel) {
		b.retry = append(b.retry, due)
		s.shard.checkNextTick(s)
		return
	}
	s.refuseBackendSub(due.channel, why)
}

// refuseBackendSub sends the client why the backend could not subscribe it to a channel.
func (s *Session) refuseBackendSub(channel string, why *wire.Error) {
	s.noteRefused(channel, why)
	s.sendUnsubscribed(channel, why)
}

// retryBackendSubs makes the subscriptions due that failed. It reads the lists again if that
// failed.
func (s *Session) retryBackendSubs() {
	if r := s.listRead(); r != nil && r.failed {
		s.readLists(nil)
	}
	if b := s.backendSubs(); b != nil && len(b.retry) > 0 {
		b.due, b.retry = append(b.due, b.retry...), nil
		s.subscribeDue()
	}
}

// checkBackendSub checks whether the backend may subscribe the client to a channel now. The
// authorizer of the channel may still refuse it.
func (s *Session) checkBackendSub(req wire.Request) error {
	if b := s.backendSubs(); b == nil || !slices.Contains(b.channels, req.Channel) {
		return backendUnsubscribed(req.Channel)
	}
	if err := s.permissions().checkSubscribe(req); err != nil {
		return err
	}
	return s.checkChannelCount(req.Channel)
}
