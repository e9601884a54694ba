package session

import (
	"context"
	"sync/atomic"
	"time"

	"switchboard/broker/binding"
	"switchboard/broker/hook"
	"switchboard/broker/work"
)

// Hooks are calls to the user's backend that decide what a client may do. Their errors are of type
// *wire.Error: the backend refused, or it could not be reached. The zero value has no hooks.
type Hooks struct {
	// Connect is called before a client is bound, after its token was verified, and again for each
	// new token. Subscribe is called before a client subscribes to a channel, or to a user's
	// presence, that the access rules allow. Nil means that there is no such hook.
	Connect, Subscribe func(context.Context, hook.Question) (hook.Answer, error)
	// Pool runs the hooks. It is not Options.Pool: a backend that hangs must not occupy the workers
	// of other clients' store calls. It is required if there is a hook.
	Pool *work.Pool
}

// question returns the question to a hook about this client, or nil if there is no hook. It must be
// called on the loop.
func (s *Session) question(ask func(context.Context, hook.Question) (hook.Answer, error), k hook.Kind, channel string) *hook.Question {
	if ask == nil {
		return nil
	}
	q := &hook.Question{
		Hook: k, Client: s.client, User: s.user(), Address: s.conn.RemoteAddr(), Channel: channel, Since: time.Now(),
	}
	if p := s.profile(); p != nil {
		q.Info = p.info
	}
	return q
}

// poolFor returns the pool for a job that calls the hook with q. A nil q means that there is no
// hook.
func (o *Options) poolFor(q *hook.Question) *work.Pool {
	if q == nil {
		return o.Pool
	}
	return o.Hooks.Pool
}

// askConnect asks whether a client may connect, and returns its identity with the changes that
// the hook made. If the client is gone before or after the question, it returns binding.ErrGone:
// meanwhile the client may have connected elsewhere, and a bind here would end that connection.
func (h *Hooks) askConnect(identity Identity, gone *atomic.Bool, q *hook.Question) (Identity, error) {
	if gone.Load() {
		return Identity{}, binding.ErrGone
	}
	q.User, q.Info = identity.User, identity.Info
	a, err := h.Connect(context.Background(), *q) // the hook has its own timeout
	switch {
	case err != nil:
		return Identity{}, err
	case gone.Load():
		return Identity{}, binding.ErrGone
	}
	if a.Info != nil {
		identity.Info = a.Info
	}
	if a.User != "" {
		identity.User = a.User
	}
	return identity, nil
}

// askSubscribe asks whether a client may subscribe. A nil q means that there is no hook.
func (h *Hooks) askSubscribe(q *hook.Question) error {
	if q == nil {
		return nil
	}
	_, err := h.Subscribe(context.Background(), *q)
	return err
}

// Authorizer decides whether a client that the access rules allow may subscribe to a channel. user
// is "" for a client without one. An error of type *wire.Error goes to the client; any other error
// means that the decision is not known.
type Authorizer func(ctx context.Context, client, user, channel string) error

// authorizer returns the authorizer of a channel, or nil.
func (s *Session) authorizer(channel string) Authorizer {
	if s.m.opts.Authorizer == nil {
		return nil
	}
	return s.m.opts.Authorizer(channel)
}
