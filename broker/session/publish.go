package session

import (
	"errors"

	"switchboard/broker/namespace"
	"switchboard/internal/payload"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// publish stores a client's message to a channel.
func (s *Session) publish(req wire.Request) {
	err := checkChannel(req)
	if err == nil {
		err = s.permissions().check(namespace.Publish, req.Channel)
	}
	var data []byte
	if err == nil {
		rule := s.m.opts.Access.Namespaces().For(req.Channel)
		if data, err = payload.Compact(req.Data, s.m.opts.Limits.payload(rule)); err == nil {
			err = s.takePublish(rule, req.Channel)
		}
	}
	if err != nil {
		s.refuse(req.Ref, err)
		return
	}
	existingOnly := s.m.rates.newChannelWait(s.rateUse()) > 0
	call(s, func() (Published, error) {
		return s.m.opts.Publish(s.m.storeContext(), req.Channel, data, existingOnly)
	}, func(p Published, err error) {
		switch {
		case s.state == closed:
		case errors.Is(err, queue.ErrNewChannel):
			err = newChannelError(&s.m.opts, req.Channel, s.m.rates.newChannelWait(s.rateUse()))
		case err == nil && p.New:
			s.countNewChannel()
		}
		s.answer(wire.Event{Type: wire.TypePublished, Ref: req.Ref, Channel: req.Channel, ID: &p.ID}, err)
	})
}

// payload returns the largest payload in bytes for a channel with that rule, which may be nil.
func (l *Limits) payload(r *namespace.Rule) int {
	if r == nil || r.Message == 0 {
		return l.Message
	}
	return min(r.Message, l.Message)
}
