package session

import (
	"cmp"
	"errors"
	"strings"

	"switchboard/broker/hook"
	"switchboard/broker/hub"
	"switchboard/broker/namespace"
	"switchboard/broker/presence"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// maxHistory is the most messages of one history answer.
const maxHistory = 256

// historyBytes is how much is read for it, a little more than one write takes: with each message
// comes its id.
const historyBytes = 36 << 10

// channel checks the name of a channel that a client may use.
func channel(req wire.Request) error {
	if err := wire.CheckName("channel", req.Channel); err != nil {
		return err
	}
	if wire.IsSystem(req.Channel) {
		return wire.Errorf(wire.Forbidden, "channel %s: it is the system's own", req.Channel)
	}
	return nil
}

func (s *Session) subscribe(req wire.Request) {
	if user, ok := strings.CutPrefix(req.Channel, wire.UserChannel); ok {
		s.followUser(req, user)
		return
	}
	req.After = s.m.opts.Hub.ResumeCursor(req.After)
	if err := s.mayEnter(req); err != nil {
		s.refuse(req.Ref, err)
		return
	}
	if sub := s.subscribed(req.Channel); sub != nil {
		s.subscribeAgain(req, sub)
		return
	}
	if s.channels() >= s.m.opts.Limits.Channels {
		s.m.opts.Metrics.Refused("channels")
		s.refuse(req.Ref, wire.Errorf(wire.RateLimited, "channel %s: the connection has %d channels, at most that many are allowed",
			req.Channel, s.m.opts.Limits.Channels))
		return
	}
	if !s.m.channels.None() && s.m.opts.Hub.Channel(req.Channel) == nil {
		if s.mayBring() > 0 {
			s.refuse(req.Ref, s.tooManyNew(req.Channel))
			return
		}
		s.brought()
	}
	prying := s.m.prying(s.subject(), req.Channel, req.After)
	q := s.question(s.m.opts.Hooks.Subscribe, hook.Subscribe, req.Channel)
	if !prying && !req.Presence && q == nil {
		if pos, ok := s.m.opts.Hub.TryAcquire(req.Channel, req.After); ok {
			s.enter(req, entrance{pos: pos})
			return
		}
	}
	callIn(s.m.asking(q), s, func() (entrance, error) {
		if err := s.m.maySubscribe(q); err != nil {
			return entrance{}, err
		}
		return s.m.prepareEntrance(req, prying)
	}, func(e entrance, err error) {
		if err == nil && s.state != closed {
			err = s.mayEnter(req) // the namespaces may be others by now
		}
		switch {
		case err == nil && s.state != closed:
			s.enter(req, e)
			return
		case s.state != closed:
			s.refuse(req.Ref, err)
		}
		s.m.giveBack(e)
	})
}

// mayEnter says whether the client may subscribe as it wants to.
func (s *Session) mayEnter(req wire.Request) error {
	if err := channel(req); err != nil {
		return err
	}
	if err := s.may(namespace.Subscribe, req.Channel); err != nil || !req.Presence {
		return err
	}
	return s.may(namespace.Presence, req.Channel)
}

// entrance is a place in a channel, and a view of those who are there for who wants to be told.
type entrance struct {
	pos  hub.Position
	view *presence.View
}

// prepareEntrance asks the store, in the pool. The view is there before the client is told that it has subscribed, so that it is
// told of everything behind that.
func (m *Manager) prepareEntrance(req wire.Request, prying bool) (e entrance, err error) {
	ctx, cancel := m.context()
	defer cancel()
	if prying {
		e.pos, err = m.acquireRecent(req.Channel, req.After)
	} else {
		e.pos, err = m.opts.Hub.Acquire(ctx, req.Channel, req.After)
	}
	if err == nil && req.Presence && m.opts.Presence != nil {
		e.view, err = m.opts.Presence.Watch(ctx, req.Channel)
	}
	return e, err
}

// giveBack is the end of an entrance that was not taken.
func (m *Manager) giveBack(e entrance) {
	if e.pos.Channel != nil {
		m.opts.Hub.Release(e.pos.Channel)
	}
	if e.view != nil {
		m.opts.Presence.Release(e.view)
	}
}

// enter tells the client where its subscription begins, and begins it.
func (s *Session) enter(req wire.Request, e entrance) {
	pos := e.pos
	answer := wire.Event{Type: wire.TypeSubscribed, Ref: req.Ref, Channel: req.Channel, ID: &pos.ResumeID}
	if req.After != nil {
		answer.Recovered = &pos.Recovered
	}
	s.send(answer)
	if s.state == closed {
		s.m.giveBack(e)
		return
	}
	s.follow(s.place(), pos)
	switch {
	case e.view == nil:
	case s.state == closed: // by the write of what was missed
		s.m.opts.Presence.Release(e.view)
	default:
		s.tellOf(req.Channel, e.view.Subscribe(s.shard.loop, s))
	}
}

// unsubscribe ends a subscription. It is answered alike where there is none, so that it can be
// repeated.
func (s *Session) unsubscribe(req wire.Request) {
	if i := s.followedAt(req.Channel); i >= 0 && strings.HasPrefix(req.Channel, wire.UserChannel) {
		s.untold(i)
		s.send(wire.Event{Type: wire.TypeUnsubscribed, Ref: req.Ref, Channel: req.Channel})
		return
	}
	if err := unsubscribable(req.Channel); err != nil {
		s.refuse(req.Ref, err)
		return
	}
	if sub := s.subscribed(req.Channel); sub != nil {
		s.unfollow(sub)
	}
	s.send(wire.Event{Type: wire.TypeUnsubscribed, Ref: req.Ref, Channel: req.Channel})
}

// unsubscribable says what is wrong with the name of a channel that a client may follow.
func unsubscribable(name string) error {
	if user, ok := strings.CutPrefix(name, wire.UserChannel); ok {
		return wire.CheckName("user", user)
	}
	return channel(wire.Request{Channel: name})
}

func (s *Session) publish(req wire.Request) {
	err := channel(req)
	if err == nil {
		err = s.may(namespace.Publish, req.Channel)
	}
	var data []byte
	if err == nil {
		rule := s.m.opts.Access.Namespaces().For(req.Channel)
		if data, err = wire.CompactData(req.Data, s.m.maxMessage(rule)); err == nil {
			err = s.pace(rule, req.Channel)
		}
	}
	if err != nil {
		s.refuse(req.Ref, err)
		return
	}
	known := s.mayBring() > 0
	call(s, func() (Published, error) {
		ctx, cancel := s.m.context()
		defer cancel()
		return s.m.opts.Publish(ctx, req.Channel, data, known)
	}, func(p Published, err error) {
		switch {
		case s.state == closed:
		case errors.Is(err, queue.ErrNewChannel):
			err = s.tooManyNew(req.Channel)
		case err == nil && p.New:
			s.brought()
		}
		s.answer(wire.Event{Type: wire.TypePublished, Ref: req.Ref, Channel: req.Channel, ID: &p.ID}, err)
	})
}

// maxMessage is the most bytes of a payload to a channel with that rule.
func (m *Manager) maxMessage(r *namespace.Rule) int {
	if r == nil || r.Message == 0 {
		return m.opts.Limits.Message
	}
	return min(r.Message, m.opts.Limits.Message)
}

// answer sends e, or the refusal when there is an error, unless the session has ended.
func (s *Session) answer(e wire.Event, err error) {
	switch {
	case s.state == closed:
	case err != nil:
		s.refuse(e.Ref, err)
	default:
		s.send(e)
	}
}

func (s *Session) history(req wire.Request) {
	err := channel(req)
	if err == nil {
		err = s.may(namespace.History, req.Channel)
	}
	if err == nil && (req.Limit < 0 || req.Limit > maxHistory) {
		err = wire.Errorf(wire.BadRequest, "limit: %d is not within 1 and %d", req.Limit, maxHistory)
	}
	if err != nil {
		s.refuse(req.Ref, err)
		return
	}
	var after int64
	if seen := s.m.opts.Hub.ResumeCursor(req.After); seen != nil {
		after = *seen
	}
	call(s, func() (queue.Page, error) {
		ctx, cancel := s.m.context()
		defer cancel()
		o := s.m.opts.Queue.ReadChannels(ctx, []queue.ChannelRead{{
			Channel: req.Channel, After: after, Limit: cmp.Or(req.Limit, maxHistory), Bytes: historyBytes,
		}})[0]
		return o.Value, o.Err
	}, func(page queue.Page, err error) {
		stored := make([]wire.Stored, 0, len(page.Messages))
		for _, m := range page.Messages {
			if _, _, lost := queue.Loss(m.Data); lost {
				page.Complete = false
				continue
			}
			stored = append(stored, wire.Stored{ID: m.ID, Data: m.Data})
		}
		// One write's worth, as of all that goes to a socket: what it does not take stays in memory.
		n := wire.Fitting(stored, func(m wire.Stored) int { return len(m.Data) })
		page.More = page.More || n < len(stored)
		stored = stored[:n]
		s.charge(stored)
		s.answer(wire.Event{
			Type: wire.TypeHistory, Ref: req.Ref, Channel: req.Channel,
			Messages: &stored, More: page.More, Recovered: &page.Complete,
		}, err)
	})
}
