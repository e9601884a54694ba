package session

import (
	"errors"
	"sync/atomic"

	"switchboard/broker/hook"
	"switchboard/internal/wire"
)

// refresh replaces the client's token by a new one of the same user. It ends the subscriptions that
// the new token does not allow.
func (s *Session) refresh(req wire.Request) {
	if s.m.opts.Access.Verify == nil {
		s.refuse(req.Ref, wire.Errorf(wire.BadRequest, "refresh: this broker takes no tokens"))
		return
	}
	q := s.question(s.m.opts.Hooks.Connect, hook.Connect, "")
	callIn(s.m.poolFor(q), s, func() (Identity, error) {
		id, err := s.m.identify(req)
		if err != nil || q == nil || id.User != q.User { // a token of another user is refused below
			return id, err
		}
		q.Refresh = true
		return s.m.opts.Hooks.askConnect(id, new(atomic.Bool), q)
	}, func(id Identity, err error) {
		switch {
		case s.state == closed:
		case err != nil:
			if own, ok := errors.AsType[*wire.Error](err); ok && own.Code == wire.Unauthorized || errors.Is(err, ErrExpired) {
				s.notifyRejected(req.Token, err)
			}
			s.refuse(req.Ref, connectError(err))
		case id.User != s.user():
			s.refuse(req.Ref, wire.Errorf(wire.Forbidden, "token: it is of user %s, the connection of %s", id.User, s.user()))
		case id.Client != "" && id.Client != wire.ClientPart(s.client):
			s.refuse(req.Ref, wire.Errorf(wire.Forbidden, "token: it is of client %s, the connection of %s", id.Client, s.client))
		default:
			s.setIdentity(id)
			s.send(wire.Event{Type: wire.TypeRefreshed, Ref: req.Ref})
			s.recheck()
		}
	})
}
