package session

import (
	"cmp"
	"errors"
	"slices"

	"switchboard/broker/hub"
	"switchboard/broker/namespace"
	"switchboard/broker/presence"
	"switchboard/internal/wire"
	"switchboard/registry"
)

// maxPresence is the most members of one presence answer.
const maxPresence = 256

// member returns the session as the presence shows it to others.
func (s *Session) member() registry.Member {
	m := registry.Member{Client: s.client, User: s.user(), Generation: s.generation}
	if p := s.profile(); p != nil {
		m.Info = p.info
	}
	return m
}

// joinPresence makes the session a member of the channel, if the channel has presence.
func (s *Session) joinPresence(sub *hub.Subscription) {
	if s.m.opts.Presence != nil && sub != &s.allSub && s.m.opts.Access.hasPresence(sub.Channel.Name) {
		s.m.opts.Presence.Join(sub.Channel.Name, s.member())
	}
}

// hasPresence returns whether the current access rules track the presence of a channel. The $all
// channel never has presence; the caller excludes it.
func (a *Access) hasPresence(channel string) bool {
	r := a.Namespaces().For(channel)
	return r != nil && !r.NoPresence
}

// leavePresence undoes joinPresence. It does not call hasPresence: the access rules may have
// changed since the join.
func (s *Session) leavePresence(sub *hub.Subscription) {
	if s.m.opts.Presence != nil && sub != &s.allSub {
		s.m.opts.Presence.Leave(sub.Channel.Name, s.client, s.generation)
	}
}

// Members returns the members of a channel that are connected to this server, for
// presence.Options.Members. It must not be called on a loop.
func (m *Manager) Members(channel string) []registry.Member {
	found := make([][]registry.Member, len(m.shards))
	m.opts.Hub.EachSubscriber(channel, func(to hub.Subscriber) {
		s := to.(*Session)
		i := s.shard.loop.Index
		found[i] = append(found[i], s.member())
	})
	return slices.Concat(found...)
}

// presence answers with a page of a channel's members on all servers.
func (s *Session) presence(req wire.Request) {
	err := checkChannel(req)
	if err == nil {
		err = s.permissions().check(namespace.Presence, req.Channel)
	}
	if err == nil {
		err = s.checkSubscribed(req.Channel)
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
	limit, i := cmp.Or(req.Limit, maxPresence), s.watches().index(req.Channel)
	if i < 0 {
		call(s, func() (presence.Page, error) {
			return s.m.opts.Presence.Page(s.m.storeContext(), req.Channel, req.Cursor, limit)
		}, func(page presence.Page, err error) { s.sendPresence(req, page, err) })
		return
	}
	// The pages and the joins and leaves of a watcher come from the same view.
	sub := s.watches()[i].sub
	call(s, func() (struct{}, error) {
		return struct{}{}, sub.DropExpired(s.m.storeContext())
	}, func(_ struct{}, err error) {
		var page presence.Page
		if err == nil {
			page, err = sub.Page(req.Cursor, limit)
		}
		s.sendPresence(req, page, err)
	})
}

// sendPresence sends a page of a channel's members.
func (s *Session) sendPresence(req wire.Request, page presence.Page, err error) {
	clients := page.WireMembers()
	e := wire.Event{Type: wire.TypePresence, Ref: req.Ref, Channel: req.Channel, Clients: &clients, Next: page.Next, Count: &page.Count}
	if page.Users >= 0 {
		e.Users = &page.Users
	}
	if errors.Is(err, registry.ErrBadCursor) {
		err = wire.Errorf(wire.BadRequest, "cursor: no earlier page returned it")
	}
	s.chargeBytes(membersSize(clients))
	s.answer(e, err)
}

// membersSize returns the bytes for which a presence answer is charged.
func membersSize(members []wire.Member) (n int) {
	for _, m := range members {
		n += len(m.Client) + len(m.User) + len(m.Info) + len(m.Here)
	}
	return n
}
