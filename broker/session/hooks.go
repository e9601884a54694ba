package session

import (
	"context"
	"errors"
	"time"

	"switchboard/broker/hook"
	"switchboard/broker/work"
)

// Hooks is how the backend is asked. What it refuses, and that it cannot be asked, is a *wire.Error.
type Hooks struct {
	// Connect is asked before a client is bound, behind its token, and again when it is refreshed; Subscribe before it
	// follows a channel or a user that the namespaces allow. Nil means that it is not.
	Connect, Subscribe func(context.Context, hook.Question) (hook.Answer, error)
	// Pool runs what asks. It is one of its own: a backend that hangs must not hold the workers that others' store calls
	// need. Required where anything is asked.
	Pool *work.Pool
}

// question is about this client, on the loop; nil where ask is.
func (s *Session) question(ask func(context.Context, hook.Question) (hook.Answer, error), k hook.Kind, channel string) *hook.Question {
	if ask == nil {
		return nil
	}
	q := &hook.Question{
		Hook: k, Client: s.client, User: s.user(), Address: s.conn.RemoteAddr(), Channel: channel, Since: time.Now(),
	}
	if p := s.pass(); p != nil {
		q.Info = p.info
	}
	return q
}

// asking is where a job runs that has q to ask.
func (m *Manager) asking(q *hook.Question) *work.Pool {
	if q == nil {
		return m.opts.Pool
	}
	return m.opts.Hooks.Pool
}

// errGone is told to nobody.
var errGone = errors.New("session: the client went before it was bound")

// letIn asks whether the client may connect, and as whom. Who has gone is not asked about, nor bound: meanwhile he
// may be connected elsewhere, and would lose that connection to this one.
func (m *Manager) letIn(id Identity, w *wish, q *hook.Question) (Identity, error) {
	if w.gone.Load() {
		return Identity{}, errGone
	}
	q.User, q.Info = id.User, id.Info
	a, err := m.opts.Hooks.Connect(context.Background(), *q) // it ends by itself
	switch {
	case err != nil:
		return Identity{}, err
	case w.gone.Load():
		return Identity{}, errGone
	}
	if a.Info != nil {
		id.Info = a.Info
	}
	if a.User != "" {
		id.User = a.User
	}
	return id, nil
}

// maySubscribe asks whether the client may follow what it wants to, where there is a question.
func (m *Manager) maySubscribe(q *hook.Question) error {
	if q == nil {
		return nil
	}
	_, err := m.opts.Hooks.Subscribe(context.Background(), *q)
	return err
}
