package session

import (
	"errors"
	"sync/atomic"

	"switchboard/broker/hook"
	"switchboard/internal/wire"
	"switchboard/registry"
)

// refresh replaces the client's token by a new one of the same user. It ends the subscriptions that
// the new token does not allow.
func (s *Session) refresh(req wire.Request) {
	if s.m.opts.Access.Verify == nil {
		s.refuse(req.Ref, wire.Errorf(wire.BadRequest, "refresh: this broker takes no tokens"))
		return
	}
	q := s.question(s.m.opts.Hooks.Connect, hook.Connect, "")
	client, user, revocations := s.client, s.user(), s.m.revocations.Load()
	callUncharged(s.m.opts.poolFor(q), s, func() (Identity, error) {
		verified, err := s.m.opts.Access.identify(req)
		if err != nil || verified.User != user { // a token of another user is refused below
			return verified, err
		}
		if err := s.m.binder.checkToken(s.m.storeContext(), client, verified.Issued); err != nil || q == nil {
			return verified, err
		}
		q.Refresh = true
		return s.m.opts.Hooks.askConnect(verified, new(atomic.Bool), q)
	}, func(identity Identity, err error) {
		switch {
		case s.state == closed:
		case err != nil:
			refusal := connectError(err)
			if e, ok := errors.AsType[*wire.Error](refusal); ok && e.Code == wire.Unauthorized {
				s.m.opts.Notify.Rejected(rejectionReason(req.Token, err), s.conn.RemoteAddr())
			}
			s.refuse(req.Ref, refusal)
		case identity.User != s.user():
			s.refuse(req.Ref, wire.Errorf(wire.Forbidden, "token: it is of user %s, the connection of %s", identity.User, s.user()))
		case identity.Client != "" && identity.Client != wire.ClientPart(s.client):
			s.refuse(req.Ref, wire.Errorf(wire.Forbidden, "token: it is of client %s, the connection of %s", identity.Client, s.client))
		default:
			s.setIdentity(identity, registry.Subscriptions{}, 0)
			s.send(wire.Event{Type: wire.TypeRefreshed, Ref: req.Ref})
			s.recheck()
			s.subscribeDue()
			if s.state == open && revocations != s.m.revocations.Load() { // Manager.Revoke has seen the former token
				s.shard.renewNow(s)
			}
		}
	})
}
