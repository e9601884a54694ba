package client

import (
	"cmp"
	"context"
	"time"

	"switchboard/internal/wire"
)

// queueConnect queues connect as the first message of s.
func (c *Client) queueConnect(s *session, token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	req := wire.Request{
		Type: wire.TypeConnect, Token: token, User: c.opts.User, After: c.subs[wire.AllChannel].pos.after(),
		// The name without the user: another token may have another user.
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
	s.connectRef = c.newRefLocked()
	req.Ref = wire.RefOf(s.connectRef)
	s.sendLocked(outgoing{req: req})
}

// receive handles one message from the broker. An error ends the session.
func (s *session) receive(ctx context.Context, raw []byte) error {
	c := s.client
	ev, err := wire.DecodeEvent(raw)
	if err != nil { // perhaps of a later version: keep the connection
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
		if !s.connectedAt.IsZero() { // ignored before `connected`
			c.dispatchLocked(s, ev, len(raw))
		}
	}
	return nil
}

// dispatchLocked handles a message that may arrive only after `connected`.
func (c *Client) dispatchLocked(s *session, ev wire.Event, size int) {
	switch ev.Type {
	case wire.TypeMessage:
		c.messageLocked(s, ev, size)
	case wire.TypeGap:
		c.gapLocked(ev)
	case wire.TypeState:
		if ev.Ref.Set {
			c.answerLocked(ev)
			return
		}
		c.pageLocked(ev, size)
	case wire.TypeJoin, wire.TypeLeave, wire.TypePresence:
		if ev.Ref.Set {
			c.answerLocked(ev)
			return
		}
		c.presenceLocked(ev, size)
	case wire.TypeHere:
		c.hereLocked(ev, size)
	case wire.TypeSubscribed:
		if ev.Ref.Set {
			c.answerLocked(ev)
			return
		}
		c.subscribedByBackendLocked(ev)
	case wire.TypeUnsubscribed:
		if ev.Ref.Set {
			c.answerLocked(ev)
			return
		}
		c.endedByBrokerLocked(ev)
	default:
		c.answerLocked(ev)
	}
}

// connectedLocked makes s the current connection. It subscribes to all channels again from their
// positions, and sends the unsent calls.
func (c *Client) connectedLocked(s *session, ev wire.Event) {
	if !s.connectedAt.IsZero() {
		return
	}
	s.connectedAt = time.Now()
	s.idleTimeout = time.Duration(min(max(ev.Ping, 0), 3600)) * time.Second * 5 / 2
	s.idleTimer.Stop()
	s.resetIdleTimer()
	c.session, c.token.used = s, true
	if ev.Client != "" && ev.Client != c.id {
		if c.id != "" { // another queue, with unrelated ids
			c.epoch, c.handled, c.queue, c.lastQueueGap = c.epoch+1, 0, position{}, Gap{}
		}
		c.id = ev.Client
	}
	c.secret = cmp.Or(ev.Secret, c.secret)
	if ev.TokenIgnored && !c.tokenIgnored {
		c.tokenIgnored = true
		c.opts.Logger.Warn().Str("url", s.url).Msg("the broker has no keys for tokens and has ignored the token: the user is the one of Options.User")
	}
	c.queueState(State{Phase: Connected, URL: s.url, Client: c.id, User: ev.User, Server: ev.Server, TokenIgnored: ev.TokenIgnored})
	all := c.subs[wire.AllChannel]
	all.active = true
	c.setPositionLocked(all, all.pos.after(), ev)
	c.resumeLocked(s)
}

// messageLocked queues a message for OnMessage, unless its id was seen before.
func (c *Client) messageLocked(s *session, ev wire.Event, size int) {
	if ev.ID == nil {
		return
	}
	m := Message{Channel: ev.Channel, ID: *ev.ID, Data: ev.Data, By: stateOf(ev).By}
	if ev.Channel == "" {
		if c.queue.advance(m.ID) {
			c.inbox.put(item{message: m, size: size, epoch: c.epoch})
			return
		}
		// The broker sends unacknowledged messages again. Acknowledge the handled ones again; the
		// others follow when their callbacks return.
		if !c.opts.AutoAck && c.handled > 0 {
			s.ackDue = true
			s.signal()
		}
		return
	}
	sub := c.subs[ev.Channel]
	if sub == nil || !sub.active || !sub.pos.advance(m.ID) {
		return
	}
	if m.Data == nil && sub.view == nil && stateOf(ev).Erase == 0 {
		return // it only changes fields or moves the position, and the subscription no longer has State
	}
	c.putLocked(sub, item{message: m, size: size, view: sub.view, state: stateOf(ev)})
}

// gapLocked moves the position to the end of a gap and reports the gap. If the position is already
// higher, it stays: a gap may arrive after a later message. An ID below After is a reset: the
// position moves back to ID, and everything above it arrives again.
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
		sub.missedLocked()
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
		case g == c.lastQueueGap:
			return // reported after an earlier connect
		}
		c.lastQueueGap = g
	}
	if reset || g.ID > pos.id {
		*pos = position{id: g.ID, known: true}
	}
	c.reportGapLocked(g)
}

func (c *Client) reportGapLocked(g Gap) {
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
	c.loadAfterGapLocked(g)
}

// errorLocked passes a refusal to its call, or to the pending connect.
func (c *Client) errorLocked(ctx context.Context, s *session, ev wire.Event) {
	err := wire.ErrorOf(ev)
	if !s.connectedAt.IsZero() {
		if call := c.calls[ev.Ref.Value]; ev.Ref.Set && call != nil {
			c.refuseLocked(ctx, s, call, err, ev)
			return
		}
	} else if !ev.Ref.Set || ev.Ref.Value == s.connectRef {
		// Wait for the close, which may have a more precise reason.
		s.refused = err
		s.idleTimer.Reset(closeGrace)
	}
	c.opts.Logger.Debug().Err(err).Msg("refused")
}
