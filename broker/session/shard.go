package session

import (
	"math"
	"sync/atomic"
	"time"

	"switchboard/broker/loop"
)

// shard is the sessions of one loop. All but next belongs to the loop.
type shard struct {
	m         *Manager
	loop      *loop.Loop
	sessions  []*Session
	due       []uint32      // of each of them: the tick at which it is looked at
	next      atomic.Uint32 // the first tick at which something is due; only the loop sets it
	renewal   renewal
	delivered int // messages since the last tick
	acks      acks

	wishing map[*Session]*wish // those that are being connected

}

// never is a tick that does not come.
const never = math.MaxUint32

func newShard(m *Manager, l *loop.Loop) *shard {
	sh := &shard{m: m, loop: l}
	sh.next.Store(never)
	return sh
}

func (sh *shard) add(s *Session) {
	s.index = int32(len(sh.sessions))
	sh.sessions = append(sh.sessions, s)
	sh.due = append(sh.due, never)
	sh.m.count.Add(1)
	if s.index == 0 {
		sh.renewal.begin(s.heard)
		sh.wake(s.heard + min(sh.refresh(), renewEvery)) // nothing else may be due for longer
	}
}

func (sh *shard) remove(s *Session) {
	last := len(sh.sessions) - 1
	sh.sessions[s.index], sh.due[s.index] = sh.sessions[last], sh.due[last]
	sh.sessions[s.index].index = s.index
	sh.sessions[last] = nil
	sh.sessions, sh.due = sh.sessions[:last], sh.due[:last]
	sh.m.count.Add(-1)
}

// wake has the shard tick at that tick, if not before.
func (sh *shard) wake(at uint32) {
	if at < sh.next.Load() {
		sh.next.Store(at)
	}
}

// look has s looked at at that tick, if not before.
func (s *Session) look(at uint32) {
	sh := s.shard
	if s.state != closed && at < sh.due[s.index] {
		sh.due[s.index] = at
		sh.wake(at)
	}
}

// soon has s looked at by the next tick.
func (s *Session) soon() { s.look(s.m.now.Load() + 1) }

// rest has s, now that it is connected, looked at when it need be, and not at the end of the time that it had for that:
// 15,000 such looks, 10 s behind the connects, took 15 ms.
func (s *Session) rest() {
	now := s.m.now.Load()
	if s.state == open && s.shard.due[s.index] > now+1 {
		s.shard.due[s.index] = never
		s.look(s.due(now, time.Now().Unix()))
	}
}

// lookAtAll has the next tick pass nobody over.
func (sh *shard) lookAtAll() {
	clear(sh.due)
	sh.wake(0)
}

// tick looks at the sessions that are due, and finds them by their numbers alone: a look at each of 15,000, and at
// whether its socket is backed up, took 2 ms a second. A loop with nothing due is not even woken, which costs 0.3 to
// 1 ms.
func (sh *shard) tick() {
	now, unix := sh.m.now.Load(), time.Now().Unix()
	next := uint32(never)
	sh.next.Store(never)                         // whoever is due sooner than he is told below wakes by himself
	for i := len(sh.sessions) - 1; i >= 0; i-- { // backwards: closing moves the last into the gap
		if sh.due[i] <= now {
			s := sh.sessions[i]
			sh.due[i] = never
			s.tick(now, unix)
			s.look(s.due(now, unix))
			continue
		}
		next = min(next, sh.due[i])
	}
	sh.wake(next)
	if len(sh.sessions) > 0 {
		sh.wake(sh.renew(now))
	}
	if sh.delivered > 0 {
		sh.m.opts.Metrics.Delivered(sh.delivered)
		sh.delivered = 0
	}
}

// due is the tick at which s must be looked at, as things are.
func (s *Session) due(now uint32, unix int64) uint32 {
	ping, idle := s.liveness()
	at := later(s.heard, ping)
	switch {
	case s.state != open:
		return s.heard + s.m.ticks.connect
	case s.unasserted || s.extra != nil && s.extra.backlog > 0 || s.inbox.dirty || s.inbox.owed() > 0:
		return now + 1
	case s.pinged:
		at = later(s.heard, idle)
	}
	if s.expires != 0 {
		at = min(at, now+uint32(min(max(int64(s.expires)-unix, 1), expiryCheck)))
	}
	return at
}

// expiryCheck is the most ticks between two looks at a token's expiry, because the clock may be set
// meanwhile.
const expiryCheck = 25

// liveness returns after how many ticks of silence the connection is pinged, and after how many it
// is closed. never means not at all.
func (s *Session) liveness() (ping, idle uint32) {
	l := s.conn.Liveness()
	return ticksOrNever(l.Ping), ticksOrNever(l.Idle)
}

func ticksOrNever(d time.Duration) uint32 {
	if d == 0 {
		return never
	}
	return ticks(d)
}

// later returns the tick that comes n after at.
func later(at, n uint32) uint32 {
	if n == never {
		return never
	}
	return at + n
}
