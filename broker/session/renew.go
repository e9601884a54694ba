package session

import (
	"context"
	"errors"
	"slices"
	"sync"

	"switchboard/internal/wire"
	"switchboard/queue"
	"switchboard/registry"
)

// maxAsserted is the most bindings that are renewed together.
const maxAsserted = 256

// assertion is a session whose binding is renewed.
type assertion struct {
	s      *Session
	b      binding
	secret queue.SecretHash
	turn   func() // gives the client's turn back
	err    error
}

// assertLater has the pool renew the bindings of some of the shard's sessions, one group after the other: what waits for
// the store meanwhile is no more with many sessions than with few. Their queues are read again where they may
// have missed something; a renewal in its turn does not. done is called for each.
func (sh *shard) assertLater(some []*Session, missed bool, done func()) {
	if len(some) == 0 {
		return
	}
	list := make([]*assertion, len(some))
	for i, s := range some {
		s.unasserted = false
		list[i] = &assertion{s: s, b: binding{s.client, s.generation, 0}, secret: s.secret}
	}
	sh.m.opts.Pool.Go(func() {
		for group := range slices.Chunk(list, maxAsserted) {
			sh.assertTogether(group, missed, done)
		}
	})
}

// assertLater is the shard's for s alone.
func (s *Session) assertLater() { s.shard.assertLater([]*Session{s}, true, func() {}) }

// assertTogether renews bindings in as many calls to the store as one takes. 15,000 that were renewed within a minute took
// 0.91 s of CPU with their heartbeats (0.87 to 1.03 in three runs), and 1.23 (1.18 to 1.28) when each went through calls of its
// own. Who would keep the others waiting goes alone.
func (sh *shard) assertTogether(list []*assertion, missed bool, done func()) {
	m, together := sh.m, make([]*assertion, 0, len(list))
	for _, a := range list {
		var ok bool
		if a.turn, ok = m.turns.try(a.b.client); ok {
			together = append(together, a)
			continue
		}
		m.opts.Pool.Go(func() {
			a.turn = m.turns.take(a.b.client)
			sh.assertAll([]*assertion{a}, missed, done)
		})
	}
	sh.assertAll(together, missed, done)
}

// assertAll renews bindings of different clients, whose turns the caller has taken, and tells their sessions.
func (sh *shard) assertAll(list []*assertion, missed bool, done func()) {
	if len(list) == 0 {
		return
	}
	ctx, cancel := sh.m.context()
	defer cancel()
	sh.m.assert(ctx, list)
	for _, a := range list {
		a.turn()
	}
	sh.loop.Post(func() {
		for _, a := range list {
			a.s.asserted(a.b, missed, a.err)
		}
	})
	for range list {
		done()
	}
}

// assert renews bindings in the store, under the server's id of now.
func (m *Manager) assert(ctx context.Context, list []*assertion) {
	server, clients, held := m.opts.ServerID(), make([]string, len(list)), make([]queue.Held, len(list))
	for i, a := range list {
		clients[i] = a.b.client
		held[i] = queue.Held{Client: a.b.client, User: wire.UserOf(a.b.client), Generation: a.b.generation, Secret: a.secret}
	}
	if err := m.opts.Registry.HoldClients(ctx, server, clients); err != nil {
		for _, a := range list {
			a.err = err
		}
		return
	}
	var users []registry.UserBinding
	var of []*assertion
	for i, err := range m.opts.Queue.RefreshClients(ctx, server, held) {
		a := list[i]
		if a.err = err; err == nil && held[i].User != "" {
			b := registry.Binding{Client: a.b.client, Server: server, Generation: a.b.generation}
			users, of = append(users, registry.UserBinding{User: held[i].User, Binding: b}), append(of, a)
		}
	}
	if len(users) > 0 {
		for i, err := range m.opts.Registry.BindUsers(ctx, users) {
			of[i].err = err
		}
	}
}

// asserted is the end of assertLater.
func (s *Session) asserted(b binding, missed bool, err error) {
	switch {
	case s.state != open:
		s.m.unbindLater(b) // it ended while it was asserted
	case errors.Is(err, queue.ErrStale):
		s.close(wire.CloseSuperseded, "the client connected elsewhere", 0)
	case err != nil:
		s.m.opts.Logger.Warn().Err(err).Msg("binding not renewed; the next tick tries again")
		s.unasserted = true
		s.soon()
	case missed:
		s.inboxDirty()
	}
}

// assertOpen is assertLater for all that are open. Each counts in wg until it has been tried.
func (sh *shard) assertOpen(wg *sync.WaitGroup) {
	var all []*Session
	for _, s := range sh.sessions {
		if s.state == open {
			all = append(all, s)
		}
	}
	wg.Add(len(all))
	sh.assertLater(all, true, wg.Done)
}
