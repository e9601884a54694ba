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
	"switchboard/internal/wire"
)

// Manager knows all sessions of the process.
type Manager struct {
	opts   Options
	shards []*shard // by loop.Index
	turns  turns

	deadlines *work.Deadlines
	ticks     struct{ connect, slow uint32 } // durations in ticks
	messages  limit.Rate                     // of a connection
	bytes     limit.Rate                     // of the same
	requests  limit.Rate                     // of the same
	channels  limit.Rate                     // that the same may bring into being
	began     time.Time

	now   atomic.Uint32 // ticks since the start, one a second
	count atomic.Int64  // sessions, connected or not
	drain atomic.Int64  // ms over which clients come back elsewhere; 0 while nobody has to

	reception reception

	mu      sync.Mutex     // guards the fields below
	clients roster         // open sessions
	users   map[string]int // how many of them each user has
	unbinds []binding      // failed, for the next tick
	unix    int64          // seconds at the last tick

	arriving map[string]*arrival
	unsure   map[attempt]struct{} // binds that broke off, for the next tick
}

// New returns a Manager without sessions.
func New(opts Options) *Manager {
	m := &Manager{opts: opts.withDefaults(), clients: newRoster(), users: make(map[string]int)}
	m.deadlines = work.NewDeadlines(m.opts.Timing.StoreCall)
	m.turns.clients = make(map[string]*turn)
	m.arriving, m.unsure = make(map[string]*arrival), make(map[attempt]struct{})
	m.ticks.connect = ticks(m.opts.Timing.Connect)
	m.ticks.slow = ticks(m.opts.Timing.Backlog)
	m.messages, m.bytes = limit.PerSecond(opts.Limits.MessageRate), limit.PerSecond(opts.Limits.ByteRate)
	m.requests = limit.PerSecond(opts.Requests.Rate)
	if n := opts.Limits.NewChannels; n > 0 {
		m.channels = limit.New(float64(n)/60, max(n, m.opts.Limits.Channels))
	}
	m.began = time.Now()
	m.unix = m.began.Unix()
	for _, l := range opts.Loops {
		m.shards = append(m.shards, newShard(m, l))
	}
	return m
}

// maxTick is how many seconds may lie between two ticks. With more the process did not run.
const maxTick = 3

// ticks rounds up: a limit is never enforced early.
func ticks(d time.Duration) uint32 { return uint32((d + time.Second - 1) / time.Second) }

// context bounds the store calls of one message. It is shared, and ends by itself.
func (m *Manager) context() (ctx context.Context, done func()) {
	return m.deadlines.Context(), func() {}
}

// Accept implements transport.Accept for both listeners.
func (m *Manager) Accept(l *loop.Loop, conn transport.Conn, requests []wire.Request) transport.Receiver {
	sh := m.shards[l.Index]
	s := &Session{shard: sh, conn: conn, heard: m.now.Load()}
	sh.add(s)
	s.look(s.heard + m.ticks.connect)
	if m.drain.Load() > 0 {
		s.leave()
		return s
	}
	for _, req := range requests {
		if s.state != closed {
			s.handle(req, 0)
		}
	}
	return s
}

// remember makes s the client's session here. It is false when a newer one is.
func (m *Manager) remember(s *Session) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.clients.get(s.client)
	if old != nil && old.generation > s.generation {
		return false
	}
	m.clients.put(s)
	if user := s.user(); user != "" {
		m.users[user]++
	}
	if old != nil {
		m.leaveLocked(old)
		old.shard.loop.Post(func() { old.close(wire.CloseSuperseded, "the client connected elsewhere", 0) })
	}
	return true
}

// forget takes s out, unless another session took its place.
func (m *Manager) forget(s *Session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.clients.get(s.client) == s {
		m.clients.remove(s.client)
		m.leaveLocked(s)
	}
}

func (m *Manager) leaveLocked(s *Session) {
	user := s.user()
	if user == "" {
		return
	}
	if m.users[user]--; m.users[user] == 0 {
		delete(m.users, user)
	}
}

func (m *Manager) session(client string) *Session {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clients.get(client)
}

// with runs f on the loop of the client's session; it is false when there is none here.
func (m *Manager) with(client string, f func(*Session)) bool {
	s := m.session(client)
	if s == nil {
		return false
	}
	s.shard.loop.Post(func() { f(s) })
	return true
}

// Hint tells that message id follows prev in the client's queue; data may be nil.
func (m *Manager) Hint(client string, id, prev int64, data []byte) {
	if s := m.told(client); s != nil {
		s.shard.loop.PostTask(&hinted{s, id, prev, data})
	}
}

// hinted is a hint on its way to the session's loop.
type hinted struct {
	s        *Session
	id, prev int64
	data     []byte
}

// Run is loop.Task's.
func (h *hinted) Run(*loop.Loop) { h.s.hint(h.id, h.prev, h.data) }

// Supersede closes the client's session here if its generation is below.
func (m *Manager) Supersede(client string, generation int64) {
	s := m.told(client)
	if s == nil {
		return
	}
	s.shard.loop.Post(func() {
		if s.generation < generation {
			s.close(wire.CloseSuperseded, "the client connected elsewhere", 0)
		}
	})
}

// Disconnect closes the client's session, because the backend asked for it. It is false when there is none here.
func (m *Manager) Disconnect(client string) bool {
	return m.with(client, func(s *Session) { s.close(wire.CloseDisconnected, "", 0) })
}

// Reply answers a request of the client. It is false when the client is not here.
func (m *Manager) Reply(client string, ref int64, data json.RawMessage) bool {
	return m.with(client, func(s *Session) {
		if s.state == open {
			s.reply(wire.Event{Type: wire.TypeReply, Ref: wire.RefOf(ref), Data: data})
		}
	})
}

// Counts are the connections, and the users among them.
func (m *Manager) Counts() (connections, users int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return int(m.count.Load()), len(m.users)
}

// Tick is the housekeeping of all sessions. It must be called once a second.
func (m *Manager) Tick() {
	m.mu.Lock()
	unbinds := m.unbinds
	m.unbinds = nil
	now, unix := m.now.Add(1), time.Now().Unix()
	slept := unix-m.unix > maxTick // or the clock was set: who expires by it was looked for too late
	m.unix = unix
	m.mu.Unlock()
	for _, b := range unbinds {
		m.unbindLater(b)
	}
	m.clearSome()
	for _, sh := range m.shards {
		if slept {
			sh.loop.Post(sh.lookAtAll)
		}
		if slept || now >= sh.next.Load() {
			sh.loop.Post(sh.tick)
		}
	}
}

// each runs f on every open session, on its loop, and returns when all have run.
func (m *Manager) each(f func(*Session)) {
	m.eachShard(func(sh *shard) {
		for i := len(sh.sessions) - 1; i >= 0; i-- {
			f(sh.sessions[i])
		}
	})
}

// eachShard runs f on every shard, on its loop, and returns when all have run.
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

// MarkAllDirty makes every session read its queue again: hints may have been lost.
func (m *Manager) MarkAllDirty() {
	m.allMissed()
	m.each(func(s *Session) { s.inboxDirty() })
}

// Assert binds every session again, under the server's id of now, and returns when all
// have been tried: after the store or the server was believed dead.
func (m *Manager) Assert() {
	m.allMissed() // who reads learns whether the store has forgotten him
	var wg sync.WaitGroup
	m.eachShard(func(sh *shard) { sh.assertOpen(&wg) })
	wg.Wait()
}

// Drain closes all sessions, and from now on every new one. Their clients come back elsewhere, spread over
// window: also those that were turned away, which else would all be back at once, where the others go.
func (m *Manager) Drain(window time.Duration) {
	m.drain.Store(max(1, window.Milliseconds()))
	m.each((*Session).leave)
}

// leave sends the client elsewhere.
func (s *Session) leave() { s.close(wire.CloseDraining, "", 1+rand.Int64N(s.m.drain.Load())) }
