package session

import (
	"context"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"switchboard/broker/binding"
	"switchboard/broker/hub"
	"switchboard/broker/limit"
	"switchboard/broker/namespace"
	"switchboard/broker/transport"
	"switchboard/broker/work"
	"switchboard/internal/meter"
	"switchboard/internal/wire"
	"switchboard/queue"
	"switchboard/registry"
)

// phase is how far a session has come. It only moves forward.
type phase uint8

const (
	fresh      phase = iota // before connect
	connecting              // while the client is being bound
	open                    // the client is bound and has been sent `connected`
	closed                  // the connection has ended or is being closed
)

// Session is the state of one client's connection. Only the connection's loop uses it.
//
// Most sessions are idle, so the size of an idle session counts: 224 bytes with two subscriptions,
// for which the allocator has a size class. Few short-lived objects have that size class, so its
// pages hold mostly sessions. This reduced the memory per connection from 1.42 to 1.2 KB, at 10,000
// connections.
type Session struct {
	*shard // of the connection's loop; s.m is shard.m, the Manager
	conn   transport.Conn

	client     string // the id, which begins with the user
	generation int64
	credential credential

	allSub, firstSub hub.Subscription // to the $all channel, and to the first other channel
	inbox            inbox
	extra            *extra // nil while all its fields are zero

	expires   uint32 // unix seconds, 0 for never
	lastHeard uint32 // the tick at which the client was last heard
	index     int32  // in shard.sessions
	state     phase
	busy      bool // a call for a message of the client is under way
	pinged    bool // since lastHeard

	mustRenew bool // the binding was lost or not renewed: the next tick renews it
}

// ensureExtra returns s.extra. It creates one if there is none.
func (s *Session) ensureExtra() *extra {
	if s.extra == nil {
		s.extra = new(extra)
	}
	return s.extra
}

// dropEmptyExtra drops s.extra if all its fields are zero.
func (s *Session) dropEmptyExtra() {
	if e := s.extra; e != nil && len(e.moreSubs) == 0 && e.waiting == nil && e.profile == nil && e.rateUse == nil &&
		len(e.watches) == 0 && e.backlogSince == 0 && e.replyBytes == 0 {
		s.extra = nil
	}
}

// listRead returns the reading of the session's lists, or nil.
func (s *Session) listRead() *listRead {
	if p := s.profile(); p != nil {
		return p.reading
	}
	return nil
}

// subscriber returns the client, with the lists that the session has.
func (s *Session) subscriber() registry.Subscriber {
	who := registry.Subscriber{User: s.user(), Client: s.client}
	if b := s.backendSubs(); b != nil {
		who.Held = b.lists
	}
	return who
}

// backendSubs returns the session's subscriptions of the backend, or nil.
func (s *Session) backendSubs() *backendSubs {
	if p := s.profile(); p != nil {
		return p.backend
	}
	return nil
}

// user returns the client's user, "" for none.
func (s *Session) user() string { return wire.UserOf(s.client) }

// permissions returns the permissions of the session's client under the current rules.
func (s *Session) permissions() permissions {
	subject := namespace.Subject{User: s.user(), Open: s.m.opts.Access.Verify == nil}
	if p := s.profile(); p != nil {
		subject.Grants = p.grants
		if p.backend != nil {
			subject.Subscribed = p.backend.channels
		}
	}
	return newPermissions(&s.m.opts, subject)
}

// profile returns the session's profile, or nil.
func (s *Session) profile() *profile {
	if s.extra == nil {
		return nil
	}
	return s.extra.profile
}

// dropEmptyProfile drops a profile that the session does not need.
func (s *Session) dropEmptyProfile() {
	if p := s.profile(); p != nil && p.empty() {
		s.extra.profile = nil
	}
	s.dropEmptyExtra()
}

// rateUse returns the session's rateUse, or nil.
func (s *Session) rateUse() *rateUse {
	if s.extra == nil {
		return nil
	}
	return s.extra.rateUse
}

// ensureRateUse returns the session's rateUse. It creates one if there is none.
func (s *Session) ensureRateUse() *rateUse {
	e := s.ensureExtra()
	if e.rateUse == nil {
		e.rateUse = new(rateUse)
	}
	return e.rateUse
}

// dropFullBuckets drops the session's rateUse if all its buckets are full again.
func (s *Session) dropFullBuckets() {
	if u := s.rateUse(); u != nil && u.full(s.m.rates.now()) {
		s.extra.rateUse = nil
		s.dropEmptyExtra()
	}
}

// waiting returns the number of waiting messages.
func (s *Session) waiting() int {
	if s.extra == nil || s.extra.waiting == nil {
		return 0
	}
	return len(s.extra.waiting.list)
}

// watches returns the session's watches.
func (s *Session) watches() watchList {
	if s.extra == nil {
		return nil
	}
	return s.extra.watches
}

// credential is what a session keeps of the proof of its client's identity: of a client without a
// user the hash of its secret, of another one when its token was issued. A session has only one of
// the two, so they share memory.
type credential queue.SecretHash

// issued returns when the token of a client with a user was issued, Unix ms; 0 if it is not known.
func (c *credential) issued() int64 { return int64(binary.LittleEndian.Uint64(c[:])) }

// setIssued sets what issued returns.
func (c *credential) setIssued(ms int64) { binary.LittleEndian.PutUint64(c[:], uint64(ms)) }

// inbox tracks how far a session has sent its client's queue, and how far the client has
// acknowledged it. Its methods are the state machine that sends the rest. They take the session,
// through which they write and call the store. Only the session's loop uses it.
type inbox struct {
	sent    int64   // the last id that was written, or skipped by an announced gap
	unacked []int64 // the written ids that are not acknowledged, ascending, at most queue.MaxWindow
	last    int64   // the last id that the queue had assigned at the bind, or at the last whole read
	ackTo   int64   // the last id that the client has acknowledged
	unsaved bool    // ackTo is not stored yet
	dirty   bool    // the store may hold messages after sent
	reading bool    // a read of the queue is under way
	acking  bool    // the session is in the shard's ackBatch
	auto    bool    // "ack":"auto": a written message counts as acknowledged
}

// begin sets the inbox to the state of the queue at the bind.
func (in *inbox) begin(b queue.Bound) { in.sent, in.ackTo, in.last = b.Acked, b.Acked, b.Last }

// unsavedAck returns the acknowledgement that the store may not have, or 0.
func (in *inbox) unsavedAck() int64 {
	if in.unsaved {
		return in.ackTo
	}
	return 0
}

// expectsAck returns whether id was written and is not acknowledged.
func (in *inbox) expectsAck(id int64) bool { return id > in.ackTo && id <= in.sent }

// Manager knows all sessions of the process.
type Manager struct {
	opts    Options
	shards  []*shard // by loop.Index
	rates   rates
	asks    *limit.Shares                     // requests that wait for the backend's URL, by sender; nil without a limit
	senders *limit.Senders                    // nil without limits of what is stored
	limits  wire.Limits                       // what `connected` says
	ticks   struct{ connect, backlog uint32 } // Timing.Connect and Timing.Slow, in ticks

	clients   localClients
	binder    *binding.Binder
	connector connector
	owners    owners

	comparisons work.Retries[string] // clients whose last comparison failed, see Compare

	deadlines       *work.Deadlines // of the store calls of one message
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

// storeContext returns the context of the store calls of one message. It is shared by calls that
// begin at about the same time, and its deadline ends it.
func (m *Manager) storeContext() context.Context { return m.deadlines.Context() }

// meteredContext is storeContext with a Meter.
func (m *Manager) meteredContext(read *meter.Meter) context.Context {
	return meter.With(m.storeContext(), read)
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

// ticks returns a duration in ticks. It rounds up: no limit is enforced early.
func ticks(d time.Duration) uint32 { return uint32((d + time.Second - 1) / time.Second) }
