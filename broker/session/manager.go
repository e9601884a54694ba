package session

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"switchboard/broker/limit"
	"switchboard/broker/loop"
	"switchboard/broker/transport"
	"switchboard/broker/work"
	"switchboard/internal/meter"
	"switchboard/internal/wire"
)

// Manager knows all sessions of the process.
type Manager struct {
	opts    Options
	shards  []*shard // by loop.Index
	rates   rates
	asks    *limit.Shares                     // requests that wait for the backend's URL, by sender; nil without a limit
	senders *limit.Senders                    // nil without limits of what is stored
	limits  wire.Limits                       // what `connected` says
	ticks   struct{ connect, backlog uint32 } // Timing.Connect and Timing.Backlog, in ticks

	clients   localClients
	binder    binder
	connector connector
	owners    owners

	comparisons work.Retries[string] // clients whose last comparison failed, see Compare

	methodDeadlines *work.Deadlines // of calls of methods

	// revocations is how often Revoke and CheckTokens were called. If a token was checked in the store
	// before such a call, and its session was not found by it, the token must be checked again.
	revocations atomic.Int64

	// rebinds is how often Held was called. A session that was being opened then compares its binding
	// with the store.
	rebinds atomic.Int64

	currentTick atomic.Uint32 // ticks since the start, one per second
	lastTick    atomic.Int64  // unix seconds of the last tick
	accepted    atomic.Int64  // sessions since the start, connected or not
	removed     atomic.Int64  // those of them that have ended
	drain       atomic.Int64  // the window of Drain in ms; 0 before Drain
}

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
	m.ticks.backlog = ticks(m.opts.Timing.Backlog)
	m.lastTick.Store(time.Now().Unix())
	for _, l := range opts.Loops {
		m.shards = append(m.shards, newShard(m, l))
	}
	m.binder.opts, m.binder.clients = &m.opts, &m.clients
	m.binder.deadlines = work.NewDeadlines(m.opts.Timing.StoreCall)
	m.methodDeadlines = work.NewDeadlines(m.opts.Timing.Method)
	m.owners.opts, m.owners.binder = &m.opts, &m.binder
	m.connector.opts, m.connector.shards, m.connector.binder = &m.opts, m.shards, &m.binder
	m.connector.revocations, m.connector.rebinds, m.connector.senders = &m.revocations, &m.rebinds, m.senders
	return m
}

// ticks returns a duration in ticks. It rounds up: no limit is enforced early.
func ticks(d time.Duration) uint32 { return uint32((d + time.Second - 1) / time.Second) }

// storeContext returns the context of the store calls of one message.
func (m *Manager) storeContext() context.Context { return m.binder.storeContext() }

// meteredContext is storeContext with a Meter.
func (m *Manager) meteredContext(read *meter.Meter) context.Context {
	return meter.With(m.storeContext(), read)
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
	if s := m.clients.getForHint(client); s != nil {
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
func (m *Manager) Supersede(client string, generation int64) { m.clients.supersede(client, generation) }

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

// onLoop runs f on the loop of the client's session. It returns false if there is no session.
func (m *Manager) onLoop(client string, f func(*Session)) bool {
	s := m.clients.get(client)
	if s == nil {
		return false
	}
	s.shard.loop.Post(func() { f(s) })
	return true
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

// maxTick is the longest expected time between two ticks, in seconds. After a longer time the
// process was suspended, or the clock was set.
const maxTick = 3

// Tick does the periodic work of all sessions. It must be called once a second.
func (m *Manager) Tick() {
	now, unix := m.currentTick.Add(1), time.Now().Unix()
	suspended := unix-m.lastTick.Swap(unix) > maxTick // the schedule of token expiries is wrong: check all sessions
	m.binder.retryUnbinds()
	m.binder.resolveUnconfirmed()
	m.owners.retry()
	m.retryComparisons()
	if report := m.senders.Expire(); report != nil {
		m.opts.Pool.Go(func() { report(m.storeContext()) })
	}
	for _, sh := range m.shards {
		if suspended {
			sh.loop.Post(sh.checkAll)
		}
		if suspended || now >= sh.nextTick.Load() {
			sh.loop.Post(sh.tick)
		}
	}
}

// each runs f for every session, on its loop, and returns when all have run.
func (m *Manager) each(f func(*Session)) {
	m.eachShard(func(sh *shard) {
		for i := len(sh.sessions) - 1; i >= 0; i-- { // backwards: f may remove the session
			f(sh.sessions[i])
		}
	})
}

// eachShard runs f for every shard, on its loop, and returns when all have run.
func (m *Manager) eachShard(f func(*shard)) {
	var wg sync.WaitGroup
	for _, sh := range m.shards {
		wg.Add(1)
		sh.loop.Post(func() {
			defer wg.Done()
			f(sh)
		})
	}
	wg.Wait()
}

// Drain closes all sessions, and from now on every new one. It asks each client to reconnect after
// a random part of window, so that the other servers get no burst of reconnects.
func (m *Manager) Drain(window time.Duration) {
	m.drain.Store(max(1, window.Milliseconds()))
	m.each((*Session).closeDraining)
}

// closeDraining asks the client to connect to another server, and closes the connection.
func (s *Session) closeDraining() {
	s.close(wire.CloseDraining, "", 1+rand.Int64N(s.m.drain.Load()))
}
