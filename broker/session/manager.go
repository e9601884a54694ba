package session

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"time"

	"switchboard/broker/binding"
	"switchboard/broker/limit"
	"switchboard/broker/loop"
	"switchboard/broker/transport"
	"switchboard/broker/work"
	"switchboard/internal/strict"
	"switchboard/internal/wire"
)

// New returns a Manager without sessions.
func New(opts Options) *Manager {
	m := &Manager{opts: opts.withDefaults(), clients: newLocalClients()}
	m.rates, m.senders = newRates(m.opts), newSenders(m.opts)
	m.asks = limit.NewShares(m.opts.Requests.Share)
	m.limits = wire.Limits{
		Message: m.opts.Limits.Message, Channels: m.opts.Limits.Channels,
		MessageRate: m.opts.Limits.MessageRate, ByteRate: m.opts.Limits.ByteRate, RequestRate: m.opts.Requests.Rate,
		Waiting: m.opts.Limits.Waiting, WaitingBytes: maxWaitingBytes,
	}
	m.ticks.connect = ticks(m.opts.Timing.Connect)
	m.ticks.backlog = ticks(m.opts.Timing.Slow)
	m.lastTick.Store(time.Now().Unix())
	for _, l := range opts.Loops {
		m.shards = append(m.shards, newShard(m, l))
	}
	m.deadlines = work.NewDeadlines(m.opts.Timing.StoreCall)
	m.binder = m.newBinder()
	m.methodDeadlines = work.NewDeadlines(m.opts.Timing.Method)
	m.owners.opts, m.owners.binder, m.owners.storeContext = &m.opts, m.binder, m.storeContext
	m.connector.opts, m.connector.shards, m.connector.binder, m.connector.storeContext = &m.opts, m.shards, m.binder, m.storeContext
	m.connector.revocations, m.connector.rebinds, m.connector.senders = &m.revocations, &m.rebinds, m.senders
	return m
}

// newBinder returns the Binder of the clients.
func (m *Manager) newBinder() *binding.Binder {
	o, n := &m.opts, &m.opts.Notify
	return binding.New(binding.Options{
		Registry: o.Registry, Queue: o.Queue, Pool: o.Pool, Sessions: m, ServerID: o.ServerID, StoreContext: m.storeContext,
		Tokens: o.Access.Verify != nil, Superseded: n.Superseded, Uncertain: n.Uncertain, UserChanged: n.UserChanged, Logger: o.Logger,
	})
}

// Accept implements transport.Accept: it returns the session of a new connection.
func (m *Manager) Accept(l *loop.Loop, conn transport.Conn, requests []wire.Request) transport.Receiver {
	sh := m.shards[l.Index]
	s := &Session{shard: sh, conn: conn, lastHeard: m.currentTick.Load()}
	sh.add(s)
	sh.checkBy(s, s.lastHeard+m.ticks.connect)
	if m.drain.Load() > 0 {
		s.closeDraining()
		return s
	}
	for _, req := range requests {
		if s.state != closed {
			s.handle(req, 0)
		}
	}
	return s
}

// Hint announces message id of the client's queue, which follows message prev. data may be nil.
func (m *Manager) Hint(client string, id, prev int64, data []byte) {
	m.binder.NoteHint(client)
	if s := m.clients.get(client); s != nil {
		s.shard.loop.PostTask(&hintTask{s, id, prev, data})
	}
}

// hintTask handles a hint on the session's loop.
type hintTask struct {
	s        *Session
	id, prev int64
	data     []byte
}

// Run implements loop.Task.
func (t *hintTask) Run(*loop.Loop) { t.s.inbox.hint(t.s, t.id, t.prev, t.data) }

// Supersede closes the client's session if its generation is lower than the given one.
func (m *Manager) Supersede(client string, generation int64) {
	m.binder.NoteHint(client)
	m.onLoop(client, func(s *Session) {
		if s.generation < generation {
			s.close(wire.CloseSuperseded, "", 0)
		}
	})
}

// Generation returns the generation of the client's open session, 0 if there is none.
func (m *Manager) Generation(client string) int64 {
	if s := m.clients.get(client); s != nil {
		return s.generation
	}
	return 0
}

// Disconnect closes the client's session at the request of the backend. It returns false if the
// client has no session here.
func (m *Manager) Disconnect(client string) bool {
	return m.onLoop(client, func(s *Session) { s.close(wire.CloseDisconnected, "", 0) })
}

// Reply sends a worker's reply to a request of the client. It returns false if the client has no
// session here.
func (m *Manager) Reply(client string, ref int64, data json.RawMessage) bool {
	return m.onLoop(client, func(s *Session) {
		if s.state == open {
			s.reply(wire.Event{Type: wire.TypeReply, Ref: wire.RefOf(ref), Data: data})
		}
	})
}

// Counts returns the number of connections, and of users among them.
func (m *Manager) Counts() (connections, users int) {
	accepted, closed := m.Accepted()
	return int(accepted - closed), m.clients.userCount()
}

// EachUser calls f with the user of each open session that has one, so with some users repeatedly.
func (m *Manager) EachUser(f func(user string)) {
	for _, s := range m.clients.sessions() {
		if user := s.user(); user != "" {
			f(user)
		}
	}
}

// Accepted returns the number of connections since the start, and how many of them have ended.
func (m *Manager) Accepted() (accepted, closed int64) {
	closed = m.removed.Load() // first, so that it is never higher than accepted
	return m.accepted.Load(), closed
}

// Drain closes all sessions, and from now on every new one. It asks each client to reconnect after
// a random part of window, so that the other servers get no burst of reconnects.
func (m *Manager) Drain(window time.Duration) {
	m.drain.Store(max(1, window.Milliseconds()))
	m.each((*Session).closeDraining)
}

// Settled returns whether the store has nothing of clients of this server, as far as is known:
// there are no connections, and all of them were unbound.
func (m *Manager) Settled() bool {
	connections, _ := m.Counts()
	return connections == 0 && m.binder.Settled() && m.owners.settled()
}

// closeDraining asks the client to connect to another server, and closes the connection.
func (s *Session) closeDraining() {
	s.close(wire.CloseDraining, "", 1+rand.Int64N(s.m.drain.Load()))
}

// Decoded returns the method that calls run with its data, decoded into an In as package strict
// does. A request without data, or with null, has the data {}.
func Decoded[In any](run func(ctx context.Context, c Caller, in In) (any, error)) Method {
	return func(ctx context.Context, c Caller, data json.RawMessage) (any, error) {
		var in In
		if len(data) == 0 || string(data) == "null" {
			data = json.RawMessage("{}")
		}
		if err := strict.Decode(data, &in); err != nil {
			return nil, err
		}
		return run(ctx, c, in)
	}
}

// Description is what a backend sees of a session.
type Description struct {
	Address  string   // the peer's host:port, which may be a proxy
	Expires  int64    // when the token ends, Unix seconds; 0 for never
	Channels []string // in the order of their subscriptions, without system channels
}

// Describe describes the session of a client. It waits for the session's loop until ctx ends. known
// is false if the client has no session here.
func (m *Manager) Describe(ctx context.Context, client string) (d Description, known bool, err error) {
	found := make(chan *Description, 1)
	known = m.onLoop(client, func(s *Session) {
		if s.state != open {
			found <- nil
			return
		}
		d := Description{Address: s.conn.RemoteAddr(), Expires: int64(s.expires), Channels: []string{}}
		for sub := range s.subs() {
			if !wire.IsSystem(sub.Channel.Name) {
				d.Channels = append(d.Channels, sub.Channel.Name)
			}
		}
		found <- &d
	})
	if !known {
		return d, false, nil
	}
	select {
	case got := <-found:
		if got == nil {
			return d, false, nil
		}
		return *got, true, nil
	case <-ctx.Done():
		return d, false, ctx.Err()
	}
}
