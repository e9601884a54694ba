package session

import (
	"context"
	crand "crypto/rand"
	"errors"
	"sync"

	"switchboard/broker/hub"
	"switchboard/broker/namespace"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// maxReceived is the most clients that are bound together.
const maxReceived = 256

// newcomer is a client that is being connected.
type newcomer struct {
	s      *Session
	req    wire.Request
	client string           // the id that it is to have
	secret string           // "" with a user
	hash   queue.SecretHash // of the secret
	wish   *wish
	c      connected
	err    error
	done   func() // of the client's turn
}

// reception binds those who come while others are being bound together: one job, and as many calls to the store as
// for one. Of 15,000 that come back at once, each to a channel of its own, each cost 81 µs of CPU (80 to 90 in three runs)
// instead of 132 (101 to 169), when each went through four calls on a goroutine of its own.
type reception struct {
	mu      sync.Mutex // guards the fields below
	waiting []*newcomer
	busy    bool // a job is under way
}

// receive has a newcomer bound with the next.
func (m *Manager) receive(n *newcomer) {
	r := &m.reception
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = append(r.waiting, n)
	if !r.busy {
		r.busy = true
		m.opts.Pool.Go(m.receiveSome)
	}
}

// receiveSome binds those who wait, and comes again, behind all other work, for those who came meanwhile.
func (m *Manager) receiveSome() {
	r := &m.reception
	r.mu.Lock()
	k := min(len(r.waiting), maxReceived)
	some := r.waiting[:k:k]
	r.waiting = r.waiting[k:]
	r.mu.Unlock()

	m.bindTogether(some)

	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy = len(r.waiting) > 0; !r.busy {
		r.waiting = nil
		return
	}
	m.opts.Pool.Go(m.receiveSome)
}

// bindTogether binds newcomers and answers them. Who would keep the others waiting goes alone.
func (m *Manager) bindTogether(some []*newcomer) {
	together := make([]*newcomer, 0, len(some))
	var gone []*newcomer // while the store was slow: nobody shall wait for theirs
	for _, n := range some {
		if n.wish.gone.Load() {
			n.err = errGone
			gone = append(gone, n)
			continue
		}
		var ok bool
		if n.c.all, ok = m.opts.Hub.TryAcquire(wire.AllChannel, n.req.After); ok {
			if n.done, ok = m.turns.try(n.client); !ok {
				m.opts.Hub.Release(n.c.all.Channel)
			}
		}
		if ok {
			together = append(together, n)
		} else {
			m.opts.Pool.Go(func() { m.bindAlone(n) })
		}
	}
	m.answer(gone)
	ctx, cancel := m.context()
	defer cancel()
	m.bindAll(ctx, together)
}

// bindAlone waits for the store, or for the client's turn.
func (m *Manager) bindAlone(n *newcomer) {
	ctx, cancel := m.context()
	defer cancel()
	if n.c.all, n.err = m.opts.Hub.Acquire(ctx, wire.AllChannel, n.req.After); n.err != nil {
		m.answer([]*newcomer{n})
		return
	}
	n.done = m.turns.take(n.client)
	m.bindAll(ctx, []*newcomer{n})
}

// bindAll binds newcomers whose turns are taken, and answers them. One that asked for an id whose
// secret it does not have gets another id, in a second call to the store.
func (m *Manager) bindAll(ctx context.Context, list []*newcomer) {
	if len(list) == 0 {
		return
	}
	m.claim(ctx, list)
	var others []*newcomer
	for _, n := range list {
		if errors.Is(n.err, queue.ErrSecret) {
			n.client = drawn()
			n.present(crand.Text())
			n.done = m.turns.take(n.client)
			others = append(others, n)
		}
	}
	if len(others) > 0 {
		m.claim(ctx, others)
	}
	for _, n := range list {
		if n.err != nil {
			m.opts.Hub.Release(n.c.all.Channel)
			n.c.all.Channel = nil
		}
	}
	m.prepare(ctx, list)
	m.answer(list)
}

// claim binds newcomers under the ids that they are to have, and gives their turns back.
func (m *Manager) claim(ctx context.Context, list []*newcomer) {
	server, claims := m.opts.ServerID(), make([]queue.Claim, len(list))
	for i, n := range list {
		claims[i] = queue.Claim{
			Client: n.client, User: n.c.identity.User, Instance: n.req.Instance, Attempt: n.req.Attempt, Secret: n.hash,
		}
	}
	for i, o := range m.bind(ctx, claims) {
		n := list[i]
		n.done()
		n.c.server, n.c.bound, n.c.arrival, n.err = server, o.bound, o.arrival, o.err
	}
}

// prepare readies the channels of wishes: who holds one can subscribe without the store. subscribe looks at everything
// again, and when something failed here, too. Where the backend has a say nothing is readied: it comes first.
func (m *Manager) prepare(ctx context.Context, list []*newcomer) {
	if m.opts.Hooks.Subscribe != nil {
		return
	}
	var wants []hub.PrefetchRequest
	var of []*newcomer
	for _, n := range list {
		req := n.wish.Load()
		if req == nil || n.err != nil {
			continue
		}
		who := namespace.Subject{User: n.c.identity.User, Grants: n.c.identity.Grants}
		if m.opts.Access.Namespaces().Allows(who, namespace.Subscribe, req.Channel) && !m.prying(who, req.Channel, req.After) {
			wants, of = append(wants, hub.PrefetchRequest{Name: req.Channel, After: req.After}), append(of, n)
		}
	}
	for i, c := range m.opts.Hub.Prefetch(ctx, wants) {
		of[i].c.ahead = c
	}
}

// answer finishes connect on the loops.
func (m *Manager) answer(list []*newcomer) {
	per := make([][]*newcomer, len(m.shards))
	for _, n := range list {
		i := n.s.shard.loop.Index
		per[i] = append(per[i], n)
	}
	for i, those := range per {
		if len(those) > 0 {
			m.shards[i].loop.Post(func() {
				for _, n := range those {
					n.s.received(n)
				}
			})
		}
	}
}

func (s *Session) received(n *newcomer) {
	s.busy = false
	s.corked(func() {
		s.shard.wished(s)
		s.connected(n)
		if n.c.ahead != nil {
			s.next() // finds the channel ready, and its answer goes out with this one
			s.m.opts.Hub.Release(n.c.ahead)
		}
		s.next()
	})
}
