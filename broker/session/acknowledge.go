package session

import (
	"context"
	"crypto/subtle"
	"errors"
	"time"

	"switchboard/broker/hook"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// maxAckAttempts is how often Acknowledge tries if the client reconnects during each attempt.
const maxAckAttempts = 3

// Acknowledge removes the messages up to id from the client's queue. It is for clients that cannot
// send messages on their connection. req is a connect message that proves the client's identity;
// address is the peer's. The client may be connected to this server, to another server or not at
// all.
//
// Acknowledge returns after the store has removed the messages. It notifies the client's server, so
// that the window of unacknowledged messages moves on. The error is of type *wire.Error.
func (m *Manager) Acknowledge(ctx context.Context, req wire.Request, address, client string, id int64) error {
	err := m.acknowledge(ctx, req, address, client, id)
	if err == nil {
		return nil
	}
	refusal := m.refusal(connectError(err))
	if refusal.Code == wire.Unauthorized {
		m.opts.Notify.Rejected(rejectionReason(req.Token, err), address)
	}
	return refusal
}

func (m *Manager) acknowledge(ctx context.Context, req wire.Request, address, client string, id int64) error {
	j, err := m.identifyUnconnected(ctx, req, address)
	if err != nil {
		return err
	}
	if j.client != client {
		return wire.Errorf(wire.Forbidden, "the id does not belong to client %s", j.client)
	}
	if err := m.binder.CheckToken(ctx, client, j.identity.Issued); err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		err := m.acknowledgeOnce(ctx, j, id)
		if attempt == maxAckAttempts || !errors.Is(err, queue.ErrStale) && !errors.Is(err, queue.ErrForgotten) {
			return err
		}
	}
}

// identifyUnconnected identifies a client by a connect message that does not connect it. It checks
// the token and calls the connect hook; the caller must check the secret.
func (m *Manager) identifyUnconnected(ctx context.Context, req wire.Request, address string) (*connectJob, error) {
	j := &connectJob{request: req}
	var err error
	if j.identity, err = m.opts.Access.checkConnect(req); err != nil {
		return nil, err
	}
	if m.opts.Hooks.Connect == nil {
		return j, m.connector.assignID(j, nil)
	}
	q := &hook.Question{Hook: hook.Connect, Address: address, Refresh: true, Since: time.Now()}
	done := make(chan error, 1)
	m.opts.Hooks.Pool.Go(func() { done <- m.connector.assignID(j, q) })
	select {
	case err := <-done:
		return j, err
	case <-ctx.Done():
		j.gone.Store(true)
		return nil, wire.Errorf(wire.Timeout, "the request ended")
	}
}

// acknowledgeOnce acknowledges with the current generation of the client.
func (m *Manager) acknowledgeOnce(ctx context.Context, j *connectJob, id int64) error {
	c, known, err := m.opts.Queue.Client(ctx, j.client)
	switch {
	case err != nil:
		return err
	case !known || c.Generation == 0 || c.User != j.identity.User:
		return wire.Errorf(wire.NotFound, "client %s is not known", j.client)
	case c.User == "" && subtle.ConstantTimeCompare(c.Secret[:], j.secretHash[:]) == 0:
		return wire.Errorf(wire.Unauthorized, "secret: it does not belong to client %s", j.client)
	case id <= 0 || id > c.Last:
		return wire.Errorf(wire.BadRequest, "id: %d was not assigned yet", id)
	}
	if _, err := m.opts.Queue.Ack(ctx, j.client, c.Generation, id); err != nil {
		return err
	}
	switch c.Server {
	case "":
	case m.opts.ServerID():
		m.Acknowledged(j.client, c.Generation, id)
	default:
		m.opts.Notify.Acknowledged(c.Server, j.client, c.Generation, id)
	}
	return nil
}

// Acknowledged updates the client's session on this server. The store already has the
// acknowledgement, which did not arrive on the session's connection.
func (m *Manager) Acknowledged(client string, generation, id int64) {
	m.onLoop(client, func(s *Session) { s.acknowledged(generation, id) })
}

func (s *Session) acknowledged(generation, id int64) {
	if s.state != open || s.generation != generation {
		return
	}
	in := &s.inbox
	in.sent, in.ackTo = max(in.sent, id), max(in.ackTo, id)
	in.dropUnacked(id)
	in.read(s)
}

// checkFullWindow reads the acknowledged position of a client with a full window from the store. A
// call of Acknowledge on another server may have made room, and its hint may be lost.
func (s *Session) checkFullWindow() {
	if s.state != open || len(s.inbox.unacked) < queue.MaxWindow {
		return
	}
	client := s.client
	s.m.opts.Pool.Go(func() {
		c, known, err := s.m.opts.Queue.Client(s.m.storeContext(), client)
		if err == nil && known {
			s.m.Acknowledged(client, c.Generation, c.Acked)
		}
	})
}
