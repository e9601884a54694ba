package session

import (
	"switchboard/broker/namespace"
	"switchboard/broker/presence"
	"switchboard/internal/meter"
	"switchboard/internal/payload"
	"switchboard/internal/wire"
)

// here sets or ends the value that the client shows to the watchers of a channel. It answers only
// with an error.
func (s *Session) here(req wire.Request) {
	data, err := payload.Compact(req.Data, presence.MaxHere)
	if string(data) == "null" {
		data = nil
	}
	if err == nil {
		err = s.checkHere(req.Channel)
	}
	ready := true
	if err == nil {
		ready, err = s.m.opts.Presence.SetHere(req.Channel, s.client, s.generation, data)
	}
	switch {
	case err != nil:
		s.refuse(req.Ref, err)
	case !ready:
		s.loadHere(req, data)
	}
}

// loadHere does the work of Session.here for a channel whose members must be read first.
func (s *Session) loadHere(req wire.Request, data []byte) {
	client := s.client
	call(s, weight(req), func(read *meter.Meter) (struct{}, error) {
		return struct{}{}, s.m.opts.Presence.LoadHere(s.m.meteredContext(read), req.Channel, client)
	}, func(_ struct{}, err error) {
		if s.state == closed {
			return
		}
		if err == nil {
			err = s.checkHere(req.Channel) // the subscription may have ended meanwhile
		}
		if err == nil {
			_, err = s.m.opts.Presence.SetHere(req.Channel, s.client, s.generation, data)
		}
		if err != nil {
			s.refuse(req.Ref, err)
		}
	})
}

// checkHere checks whether the client may show a value in a channel.
func (s *Session) checkHere(channel string) error {
	if err := checkChannel(wire.Request{Channel: channel}); err != nil {
		return err
	}
	if err := s.permissions().check(namespace.Presence, channel); err != nil {
		return err
	}
	switch {
	case s.m.opts.Presence == nil || !s.m.opts.Access.hasPresence(channel):
		return wire.Errorf(wire.Forbidden, "channel %s: it has no presence", channel)
	case s.subs().find(channel) == nil:
		return wire.Errorf(wire.Forbidden, "channel %s: not subscribed", channel)
	}
	return nil
}

// endForbiddenHere ends the values that the client shows in channels whose presence it may no
// longer see.
func (s *Session) endForbiddenHere(current permissions) {
	if s.m.opts.Presence == nil {
		return
	}
	for sub := range s.subs() {
		if name := sub.Channel.Name; !current.rules.Allows(current.subject, namespace.Presence, name) {
			s.m.opts.Presence.EndHere(name, s.client, s.generation)
		}
	}
}
