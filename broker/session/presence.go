package session

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"switchboard/broker/hub"
	"switchboard/broker/namespace"
	"switchboard/broker/presence"
	"switchboard/internal/meter"
	"switchboard/internal/wire"
	"switchboard/registry"
)

const (
	// maxPresence is the most members of one presence answer.
	maxPresence = 256
	// presenceBytes is about how many bytes of members one answer has.
	presenceBytes = 32 << 10
	// lookedAt is how much looking at a member counts as if it was read, in bytes.
	lookedAt = 2
)

// member returns the session as the presence shows it to others.
func (s *Session) member() registry.Member {
	m := registry.Member{Client: s.client, User: s.user(), Generation: s.generation}
	if p := s.profile(); p != nil {
		m.Info = p.info
	}
	return m
}

// joinPresence makes the session a member of the channel, if the channel has presence. In a channel
// that shows aliases, only users can be members.
func (s *Session) joinPresence(sub *hub.Subscription) {
	if s.m.opts.Presence == nil {
		return
	}
	channel := sub.Channel.Name
	switch r := s.m.opts.Access.Namespaces().For(channel); {
	case r == nil || r.NoPresence:
	case r.By == "":
		s.m.opts.Presence.Join(channel, s.member())
	case s.user() != "":
		s.m.opts.Presence.JoinAs(channel, r.ByField(s.user()), s.member())
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
	limit, i, client := cmp.Or(req.Limit, maxPresence), s.watches().index(req.Channel), s.client
	if i < 0 {
		call(s, weight(req), func(read *meter.Meter) (memberPage, error) {
			ctx := s.m.meteredContext(read)
			alias, err := s.m.alias(ctx, req.Channel, client)
			if err != nil {
				return memberPage{}, err
			}
			page, err := s.m.opts.Presence.Page(ctx, req.Channel, req.Cursor, limit, presenceBytes)
			return memberPage{page, alias}, err
		}, func(p memberPage, err error) { s.sendPresence(req, p, err) })
		return
	}
	// The pages and the joins and leaves of a watcher come from the same view.
	sub := s.watches()[i].sub
	call(s, weight(req), func(read *meter.Meter) (*string, error) {
		ctx := s.m.meteredContext(read)
		alias, err := s.m.alias(ctx, req.Channel, client)
		if err != nil {
			return nil, err
		}
		return alias, sub.DropExpired(ctx)
	}, func(alias *string, err error) {
		p := memberPage{alias: alias}
		if err == nil {
			p.Page, err = sub.Page(req.Cursor, limit)
			s.chargeRead(p.Count*lookedAt, weight(req))
		}
		s.sendPresence(req, p, err)
	})
}

// memberPage is a page of a channel's members for one client.
type memberPage struct {
	presence.Page
	alias *string // how the client is shown; nil in a channel that shows client ids
}

// alias returns how a client is shown in a channel, or nil if by its id.
func (m *Manager) alias(ctx context.Context, channel, client string) (*string, error) {
	alias, shows, err := m.opts.Presence.Alias(ctx, channel, client)
	if err != nil || !shows {
		return nil, err
	}
	return &alias, nil
}

// sendPresence sends a page of a channel's members.
func (s *Session) sendPresence(req wire.Request, page memberPage, err error) {
	clients := page.WireMembers()
	e := wire.Event{Type: wire.TypePresence, Ref: req.Ref, Channel: req.Channel, Clients: &clients, Next: page.Next, Count: &page.Count, Alias: page.alias}
	if page.Users >= 0 {
		e.Users = &page.Users
	}
	if errors.Is(err, registry.ErrBadCursor) {
		err = wire.BadCursor()
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
