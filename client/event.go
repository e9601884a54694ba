package client

import (
	"cmp"
	"context"
	"time"

	"switchboard/internal/wire"
)

// greet makes connect the first message of s.
func (c *Client) greet(s *session, token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	req := wire.Request{
		Type: wire.TypeConnect, Token: token, User: c.opts.User, After: c.subs[wire.AllChannel].pos.after(),
		// Without the user, which another token may have changed.
		Client: wire.ClientPart(cmp.Or(c.id, c.opts.Client)),
	}
	if token == "" && c.opts.User == "" {
		req.Secret = c.secret
	}
	if c.opts.AutoAck {
		req.Ack = "auto"
	}
	c.attempt++
	req.Instance, req.Attempt = c.instance, c.attempt
	s.connectRef = c.refLocked()
	req.Ref = wire.RefOf(s.connectRef)
	s.sendLocked(outgoing{req: req})
}

// receive handles one message of the broker; an error ends the session.
func (s *session) receive(ctx context.Context, raw []byte) error {
	c := s.client
	ev, err := wire.DecodeEvent(raw)
	if err != nil { // of a later version, perhaps: not worth the connection
		c.opts.Logger.Debug().Err(err).Msg("message not understood")
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch ev.Type {
	case wire.TypeConnected:
		c.connectedLocked(s, ev)
	case wire.TypePing:
		s.sendLocked(outgoing{req: wire.Request{Type: wire.TypePong, Ref: ev.Ref}})
	case wire.TypeClosing:
		return closedBy(ev)
	case wire.TypeError:
		c.errorLocked(ctx, s, ev)
	default:
		if !s.upSince.IsZero() { // nothing else has a meaning before `connected`
			c.streamLocked(s, ev, len(raw))
		}
	}
	return nil
}

func (c *Client) streamLocked(s *session, ev wire.Event, size int) {
	switch ev.Type {
	case wire.TypeMessage:
		c.messageLocked(s, ev, size)
	case wire.TypeGap:
		c.gapLocked(ev)
	case wire.TypeUnsubscribed:
		if ev.Ref.Set {
			c.answerLocked(ev)
			return
		}
		c.expelledLocked(ev)
	default:
		c.answerLocked(ev)
	}
}

// connectedLocked puts s in force: everything wanted is subscribed again from where it
// was, and the calls that still wait to be sent go out.
func (c *Client) connectedLocked(s *session, ev wire.Event) {
	if !s.upSince.IsZero() {
		return
	}
	s.upSince = time.Now()
	s.silence = time.Duration(min(max(ev.Ping, 0), 3600)) * time.Second * 5 / 2
	s.timer.Stop()
	s.touch()
	c.session, c.token.used = s, true
	if ev.Client != "" && ev.Client != c.id {
		if c.id != "" { // another queue, whose ids say nothing about those before
			c.epoch, c.handled, c.queue, c.queueGap = c.epoch+1, 0, position{}, Gap{}
		}
		c.id = ev.Client
	}
	c.secret = cmp.Or(ev.Secret, c.secret)
	c.announce(State{Phase: Connected, URL: s.url, Client: c.id, User: ev.User, Server: ev.Server})
	all := c.subs[wire.AllChannel]
	all.active = true
	c.startLocked(all, all.pos.after(), ev)
	c.resumeLocked(s)
}

// messageLocked hands a message over to the callbacks, unless it was seen before.
func (c *Client) messageLocked(s *session, ev wire.Event, size int) {
	if ev.ID == nil {
		return
	}
	m := Message{Channel: ev.Channel, ID: *ev.ID, Data: ev.Data}
	if ev.Channel == "" {
		if c.queue.pass(m.ID) {
			c.inbox.put(item{message: m, size: size, epoch: c.epoch})
			return
		}
		// The broker sends again what it has no acknowledgement of. Those of the ids that
		// are done with are repeated; the others follow when their callback returns.
		if !c.opts.AutoAck && c.handled > 0 {
			s.ackDue = true
			s.signal()
		}
		return
	}
	sub := c.subs[ev.Channel]
	if sub == nil || !sub.active || !sub.pos.pass(m.ID) {
		return
	}
	c.inbox.put(item{message: m, size: size})
}

// gapLocked goes on behind the gap: a later message may have come before it was told. An id below
// After is a reset, from which everything comes again.
func (c *Client) gapLocked(ev wire.Event) {
	if ev.ID == nil {
		return
	}
	g := Gap{Channel: ev.Channel, ID: *ev.ID}
	pos := &c.queue
	if ev.Channel != "" {
		sub := c.subs[ev.Channel]
		if sub == nil || !sub.active {
			return
		}
		pos = &sub.pos
	}
	g.After = pos.id
	if ev.After != nil {
		g.After = *ev.After
	}
	reset := g.ID < g.After
	if ev.Channel == "" {
		switch {
		case reset:
			c.epoch, c.handled = c.epoch+1, 0
		case g == c.queueGap:
			return // told at an earlier connect
		}
		c.queueGap = g
	}
	if reset || g.ID > pos.id {
		*pos = position{id: g.ID, known: true}
	}
	c.tellGapLocked(g)
}

func (c *Client) tellGapLocked(g Gap) {
	c.inbox.put(item{
		message: Message{Channel: g.Channel, ID: g.ID},
		epoch:   c.epoch,
		do: func() {
			if c.opts.OnGap != nil {
				c.opts.OnGap(g)
			}
		},
		gap: true,
	})
}

// errorLocked gives a refusal to whoever asked.
func (c *Client) errorLocked(ctx context.Context, s *session, ev wire.Event) {
	err := &Error{Code: wire.ErrorCode(ev.Code), Message: ev.Message}
	if !s.upSince.IsZero() {
		if call := c.calls[ev.Ref.Value]; ev.Ref.Set && call != nil {
			c.refuseLocked(ctx, s, call, err)
			return
		}
	} else if !ev.Ref.Set || ev.Ref.Value == s.connectRef {
		// The close that follows may say more, so it gets a moment.
		s.refused = err
		s.timer.Reset(lastWords)
	}
	c.opts.Logger.Debug().Err(err).Msg("refused")
}
