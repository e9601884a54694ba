package session

import (
	"cmp"
	"errors"
	"slices"

	"switchboard/broker/hook"
	"switchboard/broker/hub"
	"switchboard/broker/namespace"
	"switchboard/broker/presence"
	"switchboard/internal/wire"
	"switchboard/registry"
)

// maxPresence is the most clients of one presence answer.
const maxPresence = 256

// told is one channel, or user, whose coming and going a session is told of.
type told struct {
	channel string
	sub     *presence.Subscription
}

// followed are those that the session is told of.
func (s *Session) followed() []told {
	if s.extra == nil {
		return nil
	}
	return s.extra.told
}

func (s *Session) followedAt(channel string) int {
	return slices.IndexFunc(s.followed(), func(t told) bool { return t.channel == channel })
}

func (s *Session) tellOf(channel string, sub *presence.Subscription) {
	e := s.need()
	e.told = append(e.told, told{channel, sub})
	sub.Start()
}

func (s *Session) untold(i int) {
	s.extra.told[i].sub.Close()
	s.extra.told = slices.Delete(s.extra.told, i, i+1)
	s.spare()
}

// member is the session as the others in a channel see it.
func (s *Session) member() registry.Member {
	m := registry.Member{Client: s.client, User: s.user(), Generation: s.generation}
	if p := s.pass(); p != nil {
		m.Info = p.info
	}
	return m
}

// comeIn makes the session one of the channel's clients; the channel of everyone has none.
func (s *Session) comeIn(sub *hub.Subscription) {
	if s.accounted(sub) {
		s.m.opts.Presence.Join(sub.Channel.Name, s.member())
	}
}

// accounted says whether an account is kept of who is in the channel.
func (s *Session) accounted(sub *hub.Subscription) bool {
	if s.m.opts.Presence == nil || sub == &s.all {
		return false
	}
	r := s.m.opts.Access.Namespaces().For(sub.Channel.Name)
	return r != nil && !r.NoPresence
}

// goOut takes it back.
func (s *Session) goOut(sub *hub.Subscription) {
	if s.m.opts.Presence != nil && sub != &s.all { // whatever the namespaces say by now
		s.m.opts.Presence.Leave(sub.Channel.Name, s.client, s.generation)
	}
}

// Members are the clients in a channel here (presence.Options). It is not called from a loop.
func (m *Manager) Members(channel string) []registry.Member {
	found := make([][]registry.Member, len(m.shards))
	m.opts.Hub.EachSubscriber(channel, func(to hub.Subscriber) {
		s := to.(*Session)
		i := s.shard.loop.Index
		found[i] = append(found[i], s.member())
	})
	return slices.Concat(found...)
}

// Client is presence.Listener's.
func (s *Session) Client() string { return s.client }

// followUser is subscribe to the coming and going of a user.
func (s *Session) followUser(req wire.Request, user string) {
	p := s.m.opts.Presence
	err := s.mayFollow(req.Channel, user)
	switch {
	case err != nil:
	case s.followedAt(req.Channel) >= 0:
		s.send(wire.Event{Type: wire.TypeSubscribed, Ref: req.Ref, Channel: req.Channel})
		return
	case s.channels()+len(s.followed()) >= s.m.opts.Limits.Channels:
		err = wire.Errorf(wire.RateLimited, "channel %s: the connection has %d channels, at most that many are allowed",
			req.Channel, s.m.opts.Limits.Channels)
	}
	if err != nil {
		s.refuse(req.Ref, err)
		return
	}
	q := s.question(s.m.opts.Hooks.Subscribe, hook.Subscribe, req.Channel)
	callIn(s.m.asking(q), s, func() (*presence.UserView, error) {
		if err := s.m.maySubscribe(q); err != nil {
			return nil, err
		}
		ctx, cancel := s.m.context()
		defer cancel()
		return p.WatchUser(ctx, user)
	}, func(v *presence.UserView, err error) {
		var forbidden error
		if err == nil && s.state != closed {
			forbidden = s.mayFollow(req.Channel, user) // the namespaces may be others by now
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
			s.tellOf(req.Channel, v.Subscribe(s.shard.loop, s))
		}
	})
}

// mayFollow says whether the client may be told of the coming and going of a user.
func (s *Session) mayFollow(channel, user string) error {
	if err := wire.CheckName("user", user); err != nil {
		return err
	}
	if s.m.opts.Presence == nil || !s.m.opts.Access.Namespaces().MayFollow(s.subject(), user) {
		return wire.Errorf(wire.Forbidden, "channel %s: not allowed to subscribe", channel)
	}
	return nil
}

// presence answers who is in a channel, on all servers.
func (s *Session) presence(req wire.Request) {
	err := channel(req)
	if err == nil {
		err = s.may(namespace.Presence, req.Channel)
	}
	switch {
	case err != nil:
	case s.m.opts.Presence == nil:
		err = wire.Errorf(wire.Forbidden, "channel %s: it has no presence", req.Channel)
	case req.Limit < 0 || req.Limit > maxPresence:
		err = wire.Errorf(wire.BadRequest, "limit: %d is not within 1 and %d", req.Limit, maxPresence)
	}
	if err != nil {
		s.refuse(req.Ref, err)
		return
	}
	limit, i := cmp.Or(req.Limit, maxPresence), s.followedAt(req.Channel)
	if i < 0 {
		call(s, func() (presence.Page, error) {
			ctx, cancel := s.m.context()
			defer cancel()
			return s.m.opts.Presence.Page(ctx, req.Channel, req.Cursor, limit)
		}, func(page presence.Page, err error) { s.page(req, page, err) })
		return
	}
	sub := s.followed()[i].sub
	call(s, func() (struct{}, error) {
		ctx, cancel := s.m.context()
		defer cancel()
		return struct{}{}, sub.DropExpired(ctx)
	}, func(_ struct{}, err error) {
		var page presence.Page
		if err == nil {
			page, err = sub.Page(req.Cursor, limit)
		}
		s.page(req, page, err)
	})
}

// page answers with who is in a channel.
func (s *Session) page(req wire.Request, page presence.Page, err error) {
	clients := presence.WireMembers(page.Members)
	e := wire.Event{Type: wire.TypePresence, Ref: req.Ref, Channel: req.Channel, Clients: &clients, Next: page.Next, Count: &page.Count}
	if page.Users >= 0 {
		e.Users = &page.Users
	}
	if errors.Is(err, registry.ErrBadCursor) {
		err = wire.Errorf(wire.BadRequest, "cursor: it is not one that an earlier page gave")
	}
	s.chargeMembers(page.Members)
	s.answer(e, err)
}
