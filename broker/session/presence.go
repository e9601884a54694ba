package session

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"switchboard/broker/hook"
	"switchboard/broker/hub"
	"switchboard/broker/namespace"
	"switchboard/broker/presence"
	"switchboard/internal/meter"
	"switchboard/internal/payload"
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

// watchUser begins to watch a user's presence. It handles a subscribe to the user's system channel.
func (s *Session) watchUser(req wire.Request, user string) {
	p := s.m.opts.Presence
	err := s.permissions().checkWatchUser(req.Channel, user)
	switch {
	case err != nil:
	case p == nil:
		err = notWatchable(req.Channel)
	case s.watches().index(req.Channel) >= 0:
		s.send(wire.Event{Type: wire.TypeSubscribed, Ref: req.Ref, Channel: req.Channel})
		return
	case s.subs().count()+len(s.watches()) >= s.m.opts.Limits.Channels:
		err = tooManyChannels(&s.m.opts.Limits, req.Channel)
	}
	if err != nil {
		s.refuse(req.Ref, err)
		return
	}
	q := s.question(s.m.opts.Hooks.Subscribe, hook.Subscribe, req.Channel)
	callIn(s.m.opts.poolFor(q), s, weight(req), func(read *meter.Meter) (*presence.UserView, error) {
		if err := s.m.opts.Hooks.askSubscribe(q); err != nil {
			return nil, err
		}
		return p.WatchUser(s.m.meteredContext(read), user)
	}, func(v *presence.UserView, err error) {
		var forbidden error
		if err == nil && s.state != closed {
			forbidden = s.permissions().checkWatchUser(req.Channel, user) // the access rules may have changed meanwhile
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
			s.startWatch(req.Channel, v.Subscribe(s.shard.loop, s))
		}
	})
}
