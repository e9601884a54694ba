package session

import (
	"context"
	"errors"
	"sync"

	"switchboard/internal/wire"
	"switchboard/queue"
	"switchboard/registry"
)

// binding is what this server holds in the store in a client's name.
type binding struct {
	client     string
	generation int64
	ackTo      int64 // acknowledged by the client, perhaps not yet in the store
}

// turns serialise the store calls about one client: a binding and the end of the one
// before it must not overtake each other in s_c_. A turn is a place in a channel and not a
// mutex: it is held over store calls, and testing/synctest sees through the wait for it.
type turns struct {
	mu      sync.Mutex // guards the field below and every turn.takers
	clients map[string]*turn
}

// turn is there while somebody holds it or waits for it.
type turn struct {
	place  chan struct{}
	takers int
}

// take waits for the client's turn.
func (t *turns) take(client string) (done func()) {
	t.mu.Lock()
	own := t.clients[client]
	if own == nil {
		own = t.newLocked(client)
	}
	own.takers++
	t.mu.Unlock()
	own.place <- struct{}{}
	return func() { t.done(client, own) }
}

// try takes it if nobody has it, or waits for it.
func (t *turns) try(client string) (done func(), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.clients[client] != nil {
		return nil, false
	}
	own := t.newLocked(client)
	own.takers++
	own.place <- struct{}{}
	return func() { t.done(client, own) }, true
}

func (t *turns) newLocked(client string) *turn {
	own := &turn{place: make(chan struct{}, 1)}
	t.clients[client] = own
	return own
}

func (t *turns) done(client string, own *turn) {
	<-own.place
	t.mu.Lock()
	defer t.mu.Unlock()
	if own.takers--; own.takers == 0 {
		delete(t.clients, client)
	}
}

// outcome is what became of a claim. It has an arrival if the client was bound.
type outcome struct {
	bound   queue.Bound
	arrival *arrival
	err     error
}

// bind makes this server the owner of different clients, whose turns the caller has: first the note that lets the janitor find
// them, then the fence, then the user's list of clients.
func (m *Manager) bind(ctx context.Context, claims []queue.Claim) []outcome {
	server, out, clients := m.opts.ServerID(), make([]outcome, len(claims)), make([]string, len(claims))
	for i := range claims {
		claims[i].Server = server
		clients[i] = claims[i].Client
	}
	if err := m.opts.Registry.HoldClients(ctx, server, clients); err != nil {
		for i, client := range clients {
			m.doubt(client, server)
			out[i].err = err
		}
		return out
	}
	for i, client := range clients {
		out[i].arrival = m.arrives(client)
	}
	for i, o := range m.opts.Queue.BindClients(ctx, claims) {
		if o.Err != nil {
			m.arrived(clients[i], out[i].arrival)
			m.unheld(ctx, clients[i], server, o.Err)
			out[i] = outcome{o.Value, nil, o.Err}
			continue
		}
		m.bound(out[i].arrival, o.Value.Generation)
		out[i].bound = o.Value
	}
	m.bindUsers(ctx, claims, out)
	m.payOwed(ctx, claims, out)
	return out
}

// unheld takes back the note of a client whose bind failed. Where the secret was refused nothing is
// bound, and the note stays only if this server has the client that the id belongs to.
func (m *Manager) unheld(ctx context.Context, client, server string, failed error) {
	if errors.Is(failed, queue.ErrSecret) {
		here, err := m.isHere(ctx, client)
		if err == nil && !here {
			err = m.opts.Registry.DropClient(ctx, server, client)
		}
		if err == nil {
			return
		}
	}
	m.doubt(client, server)
}

// bindUsers puts clients that are bound into their users' lists. Those of whom that failed are
// unbound.
func (m *Manager) bindUsers(ctx context.Context, claims []queue.Claim, out []outcome) {
	var list []registry.UserBinding
	var at []int
	for i, o := range out {
		if c := claims[i]; o.err == nil && c.User != "" {
			b := registry.Binding{Client: c.Client, Server: c.Server, Generation: o.bound.Generation}
			list, at = append(list, registry.UserBinding{User: c.User, Binding: b}), append(at, i)
		}
	}
	if len(list) > 0 {
		for k, err := range m.opts.Registry.BindUsers(ctx, list) {
			out[at[k]].err = err
			m.opts.Notify.UserChanged(list[k].User)
		}
	}
	for i, o := range out {
		if c := claims[i]; o.err != nil && o.arrival != nil {
			m.unbindLater(binding{client: c.Client, generation: o.bound.Generation})
		}
	}
}

// payOwed withdraws what should be: a server was killed, or the store away, between an acknowledgement and what it withdraws
// from the others.
func (m *Manager) payOwed(ctx context.Context, claims []queue.Claim, out []outcome) {
	var calls sync.WaitGroup
	for i, o := range out {
		if o.arrival != nil && o.bound.Owes {
			calls.Go(func() {
				if _, err := m.opts.Queue.Ack(ctx, claims[i].Client, o.bound.Generation, o.bound.Acked); err != nil {
					m.opts.Logger.Warn().Err(err).Msg("nothing is withdrawn yet; the client's next acknowledgement tries again")
				}
			})
		}
	}
	calls.Wait()
}

// unbindLater ends a binding in the pool; while the store is away it is kept for the next tick.
func (m *Manager) unbindLater(b binding) {
	m.opts.Pool.Go(func() {
		ctx, cancel := m.context()
		defer cancel()
		if err := m.unbind(ctx, b); err != nil {
			m.opts.Logger.Warn().Err(err).Msg("unbind failed; the next tick tries again")
			m.mu.Lock()
			m.unbinds = append(m.unbinds, b)
			m.mu.Unlock()
		}
	})
}

// unbind is compare-and-delete by generation: a client that is bound anew, here or
// elsewhere, stays so.
func (m *Manager) unbind(ctx context.Context, b binding) error {
	defer m.turns.take(b.client)()
	if m.replaced(b) {
		return nil
	}
	if b.ackTo > 0 {
		if _, err := m.opts.Queue.Ack(ctx, b.client, b.generation, b.ackTo); err != nil && !fenced(err) {
			return err
		}
	}
	err := m.opts.Queue.Unbind(ctx, b.client, b.generation)
	rebound := false
	if fenced(err) {
		rebound, err = m.isHere(ctx, b.client)
	}
	if user := wire.UserOf(b.client); err == nil && user != "" {
		err = m.opts.Registry.ReleaseUser(ctx, user, b.client, b.generation)
		m.opts.Notify.UserChanged(user)
	}
	if err == nil && !rebound {
		err = m.opts.Registry.DropClient(ctx, m.opts.ServerID(), b.client)
	}
	return err
}

// replaced says whether a later session here has all that b has bound: then nothing is left of b in the store.
func (m *Manager) replaced(b binding) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.clients.get(b.client)
	return s != nil && s.generation > b.generation
}

// fenced says whether a call in a client's name was refused: the binding is another by now, or none.
func fenced(err error) bool {
	return errors.Is(err, queue.ErrStale) || errors.Is(err, queue.ErrForgotten)
}

// isHere says whether this server owns the client by now: then the note in s_c_ stays.
func (m *Manager) isHere(ctx context.Context, client string) (bool, error) {
	c, known, err := m.opts.Queue.Client(ctx, client)
	return known && c.Server == m.opts.ServerID(), err
}
