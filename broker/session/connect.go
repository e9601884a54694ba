package session

import (
	"errors"
	"math/rand/v2"
	"time"

	"switchboard/broker/hook"
	"switchboard/broker/hub"
	"switchboard/internal/wire"
	"switchboard/queue"
	"switchboard/registry"
)

// connected is what connect found out.
type connected struct {
	identity Identity
	server   string // the id under which it was bound, or an older one
	bound    queue.Bound
	arrival  *arrival     // nil when it was not bound
	all      hub.Position // of the channel that a push to everyone goes through
	ahead    *hub.Channel // what the client subscribes to next, held until it does; or nil
}

// connect binds the client to this server.
func (s *Session) connect(req wire.Request) {
	if s.state != fresh {
		s.refuse(req.Ref, wire.Errorf(wire.BadRequest, "connect: the connection is %s's already", s.client))
		return
	}
	if req.Ack != "" && req.Ack != "auto" && req.Ack != "client" {
		s.refuse(req.Ref, wire.Errorf(wire.BadRequest, `ack: %.40q is neither "client" nor "auto"`, req.Ack))
		return
	}
	s.state, s.inbox.auto = connecting, req.Ack == "auto"
	s.Heard()
	n := &newcomer{s: s, req: req, wish: s.shard.wishes(s)}
	q := s.question(s.m.opts.Hooks.Connect, hook.Connect, "")
	s.busy = true
	if q == nil && s.m.opts.Access.Verify == nil { // nothing that takes long
		s.m.admitted(n, nil)
		return
	}
	s.m.asking(q).Go(func() { s.m.admitted(n, q) })
}

// identify says who the client is, by its token or, where the broker is open, by its word.
func (m *Manager) identify(req wire.Request) (Identity, error) {
	if m.opts.Access.Verify != nil {
		switch {
		case req.Token != "":
			return m.opts.Access.Verify(req.Token)
		case !m.opts.Access.Anonymous || req.Type != wire.TypeConnect:
			return Identity{}, wire.Errorf(wire.Unauthorized, "token: missing")
		case req.User != "":
			return Identity{}, wire.Errorf(wire.Unauthorized, "token: missing; without one nobody is a user")
		}
		return Identity{}, nil
	}
	info, err := wire.CompactInfo(req.Info)
	if err != nil || req.User == "" {
		return Identity{Info: info}, err
	}
	return Identity{User: req.User, Info: info}, wire.CheckName("user", req.User)
}

// admitted has a newcomer received, if he may come in. The backend is asked behind the token, which costs it nothing, and
// before anything is bound.
func (m *Manager) admitted(n *newcomer, q *hook.Question) {
	if n.c.identity, n.err = m.checked(n.req); n.err == nil {
		n.err = m.name(n, q)
	}
	if n.err != nil {
		m.answer([]*newcomer{n})
		return
	}
	m.receive(n)
}

// checked says who wants to connect, if he asks as he should.
func (m *Manager) checked(req wire.Request) (Identity, error) {
	if req.Secret != "" {
		if err := wire.CheckSecret(req.Secret); err != nil {
			return Identity{}, err
		}
	}
	if req.Instance != "" {
		if err := wire.CheckName("instance", req.Instance); err != nil {
			return Identity{}, err
		}
	}
	if req.Attempt < 0 {
		return Identity{}, wire.Errorf(wire.BadRequest, "attempt: %d is below zero", req.Attempt)
	}
	return m.identify(req)
}

// connected finishes connect on the loop.
func (s *Session) connected(n *newcomer) {
	req, c, err := n.req, n.c, n.err
	if c.arrival != nil {
		defer s.m.arrived(n.client, c.arrival)
		s.m.supersede(n.client, c.bound) // whatever becomes of s: the other one has lost the client
	}
	if err != nil {
		if s.state != closed {
			s.connectFailed(req, err)
		}
		return
	}
	if s.state == closed { // the client went while we asked
		s.m.opts.Hub.Release(c.all.Channel)
		s.m.unbindLater(binding{n.client, c.bound.Generation, 0})
		return
	}
	s.state = open
	s.client, s.secret, s.generation = n.client, n.hash, c.bound.Generation
	s.admit(c.identity)
	s.inbox.begin(c.bound)
	if s.m.remember(s) {
		s.welcome(n)
	} else {
		s.close(wire.CloseSuperseded, "the client connected elsewhere", 0)
	}
	if s.state == closed { // also when the first write failed
		s.m.opts.Hub.Release(c.all.Channel)
		return
	}
	s.follow(&s.all, c.all)
	if c.server != s.m.opts.ServerID() { // declared dead meanwhile: the assertion has passed over s
		s.assertLater()
	}
	if s.m.mustRead(c) {
		s.inboxDirty()
	}
	s.rest()
}

// supersede tells the server that held the client until now.
func (m *Manager) supersede(client string, bound queue.Bound) {
	switch bound.Server {
	case "":
	case m.opts.ServerID():
		m.Supersede(client, bound.Generation)
	default:
		m.opts.Notify.Superseded(bound.Server, client, bound.Generation)
	}
}

// welcome tells the client that it is connected.
func (s *Session) welcome(n *newcomer) {
	req, c := n.req, n.c
	queued := c.bound.Queued
	s.send(wire.Event{
		Type: wire.TypeConnected, Ref: req.Ref, Client: s.client, User: s.user(), Secret: n.secret,
		Server: s.m.opts.ServerID(), Ping: int(s.conn.Liveness().Ping / time.Second), Queued: &queued,
		ID: &c.all.Cursor, // where the client resumes what went to everyone
	})
	if req.After != nil && !c.all.Recovered && c.all.Cursor != *req.After { // else the gap comes in its place
		s.Gap(wire.AllChannel, *req.After, c.all.Cursor)
	}
}

// connectFailed tells why and ends the connection.
func (s *Session) connectFailed(req wire.Request, err error) {
	if errors.Is(err, queue.ErrStale) { // a later attempt of the client was faster
		s.close(wire.CloseSuperseded, "the client connected elsewhere", 0)
		return
	}
	refusal := s.m.refusal(bindError(err))
	if errors.Is(err, registry.ErrTooManyClients) {
		s.m.opts.Metrics.Refused("user_connections")
	}
	s.refuse(req.Ref, refusal)
	switch refusal.Code {
	case wire.Unauthorized:
		s.rejected(req.Token, err)
		if errors.Is(err, ErrExpired) {
			s.close(wire.CloseExpired, "the token ran out", 0)
			return
		}
		s.close(wire.CloseUnauthorized, refusal.Message, 0)
	case wire.Unavailable, wire.RateLimited:
		s.close(wire.CloseOverloaded, refusal.Message, 500+rand.Int64N(4500))
	default:
		s.close(wire.CloseUnauthorized, refusal.Message, 0)
	}
}

// rejected reports a token that is not good, while the connection is open.
func (s *Session) rejected(token string, err error) {
	reason := RejectedBad
	switch {
	case token == "":
		reason = RejectedMissing
	case errors.Is(err, ErrExpired):
		reason = RejectedExpired
	}
	s.m.opts.Notify.Rejected(reason, s.conn.RemoteAddr())
}

// ErrExpired is in the chain of Verify's error when the token was good once.
var ErrExpired = errors.New("session: the token ran out")

func bindError(err error) error {
	switch {
	case errors.Is(err, ErrExpired):
		return wire.Errorf(wire.Unauthorized, "token: it ran out")
	case errors.Is(err, registry.ErrTooManyClients):
		return wire.Errorf(wire.RateLimited, "the user has as many clients online as are allowed")
	}
	return err
}

// refresh takes a new token of the same user. What that allows less than the one before ends.
func (s *Session) refresh(req wire.Request) {
	if s.m.opts.Access.Verify == nil {
		s.refuse(req.Ref, wire.Errorf(wire.BadRequest, "refresh: this broker takes no tokens"))
		return
	}
	q := s.question(s.m.opts.Hooks.Connect, hook.Connect, "")
	callIn(s.m.asking(q), s, func() (Identity, error) {
		id, err := s.m.identify(req)
		if err != nil || q == nil || id.User != q.User { // the last is refused below
			return id, err
		}
		q.Refresh = true
		return s.m.letIn(id, new(wish), q)
	}, func(id Identity, err error) {
		switch {
		case s.state == closed:
		case err != nil:
			if own, ok := errors.AsType[*wire.Error](err); ok && own.Code == wire.Unauthorized || errors.Is(err, ErrExpired) {
				s.rejected(req.Token, err)
			}
			s.refuse(req.Ref, bindError(err))
		case id.User != s.user():
			s.refuse(req.Ref, wire.Errorf(wire.Forbidden, "token: it is of user %s, the connection of %s", id.User, s.user()))
		case id.Client != "" && id.Client != wire.ClientPart(s.client):
			s.refuse(req.Ref, wire.Errorf(wire.Forbidden, "token: it is of client %s, the connection of %s", id.Client, s.client))
		default:
			s.admit(id)
			s.send(wire.Event{Type: wire.TypeRefreshed, Ref: req.Ref})
			s.recheck()
		}
	})
}
