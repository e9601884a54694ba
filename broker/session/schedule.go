package session

import (
	"cmp"
	"math"
	"time"

	"switchboard/broker/transport"
	"switchboard/internal/wire"
)

// Each shard knows the tick at which each of its sessions must be checked next, and runs only if
// one is due. Checking all of 15,000 sessions and their sockets at every tick took 2 ms per second.
// Waking a loop that had nothing to do took 0.3 to 1 ms. The functions here run on the shard's
// loop.

// never is a tick that does not come.
const never = math.MaxUint32

// expiryCheck is the most ticks between two checks of a token's expiry: the clock may be set in
// between.
const expiryCheck = 25

// tickBy makes sure that the shard runs at the given tick or earlier.
func (sh *shard) tickBy(at uint32) {
	if at < sh.nextTick.Load() {
		sh.nextTick.Store(at)
	}
}

// checkBy makes sure that s is checked at the given tick or earlier.
func (sh *shard) checkBy(s *Session, at uint32) {
	if s.state != closed && at < sh.checkAt[s.index] {
		sh.checkAt[s.index] = at
		sh.tickBy(at)
	}
}

// checkNextTick makes sure that the next tick checks s.
func (sh *shard) checkNextTick(s *Session) { sh.checkBy(s, sh.m.currentTick.Load()+1) }

// checkAll makes sure that the next tick checks all sessions.
func (sh *shard) checkAll() {
	clear(sh.checkAt)
	sh.tickBy(0)
}

// cancelConnectCheck replaces the check for the connect timeout, once s is open, by the check that
// an open session needs. 15,000 needless checks 10 s after the connects took 15 ms.
func (sh *shard) cancelConnectCheck(s *Session) {
	now := sh.m.currentTick.Load()
	if s.state == open && sh.checkAt[s.index] > now+1 {
		sh.checkAt[s.index] = never
		sh.checkBy(s, sh.nextCheck(s, now, time.Now().Unix()))
	}
}

// nextCheck returns the tick at which s must be checked, given its present state.
func (sh *shard) nextCheck(s *Session, now uint32, unix int64) uint32 {
	ping, idle := livenessTicks(s.conn)
	at := later(s.lastHeard, ping)
	switch {
	case s.state != open:
		return s.lastHeard + sh.m.ticks.connect
	case s.mustRenew || s.extra != nil && s.extra.backlogSince > 0 || s.inbox.dirty || s.inbox.unsavedAck() > 0:
		return now + 1
	case s.pinged:
		at = later(s.lastHeard, idle)
	}
	if s.expires != 0 {
		at = min(at, now+uint32(min(max(int64(s.expires)-unix, 1), expiryCheck)))
	}
	return at
}

// livenessTicks returns the number of ticks without a sign of life from the client until it is
// pinged, and until its connection is closed. Either may be never.
func livenessTicks(conn transport.Conn) (ping, idle uint32) {
	l := conn.Liveness()
	return ticksOrNever(l.Ping), ticksOrNever(l.Idle)
}

// ticksOrNever returns a duration in ticks, or never for 0.
func ticksOrNever(d time.Duration) uint32 {
	if d == 0 {
		return never
	}
	return ticks(d)
}

// later returns the tick that comes n ticks after at.
func later(at, n uint32) uint32 {
	if n == never {
		return never
	}
	return at + n
}

// tick checks the sessions that are due and renews the bindings that are due. It reads only checkAt
// for the other sessions.
func (sh *shard) tick() {
	now, unix := sh.m.currentTick.Load(), time.Now().Unix()
	next := uint32(never)
	sh.nextTick.Store(never)                     // tickBy and checkBy lower it below
	for i := len(sh.sessions) - 1; i >= 0; i-- { // backwards: a session that closes is replaced by the last
		if sh.checkAt[i] <= now {
			s := sh.sessions[i]
			sh.checkAt[i] = never
			sh.check(s, now, unix)
			sh.checkBy(s, sh.nextCheck(s, now, unix))
			continue
		}
		next = min(next, sh.checkAt[i])
	}
	sh.tickBy(next)
	if len(sh.sessions) > 0 {
		sh.tickBy(sh.renewDue(now))
	}
	if sh.delivered > 0 {
		sh.m.opts.Metrics.Delivered(sh.delivered)
		sh.delivered = 0
	}
}

// check checks the timeouts of s and repeats what failed. nextCheck says when.
func (sh *shard) check(s *Session, now uint32, unix int64) {
	limits, silent := &sh.m.ticks, now-s.lastHeard
	ping, idle := livenessTicks(s.conn)
	switch {
	case s.state != open:
		if silent >= limits.connect {
			s.close(wire.CloseBadRequest, "no connect in time", 0)
		}
		return
	case s.expires != 0 && unix >= int64(s.expires):
		s.close(wire.CloseExpired, tokenExpired, 0)
		return
	case silent >= idle:
		s.close(wire.CloseIdle, "", 0)
		return
	case silent >= ping && !s.pinged:
		if s.conn.Ping(); idle == never { // no answer will come: the interval until the next ping begins now
			s.lastHeard = now
		} else {
			s.pinged = true
		}
	}
	if s.state == closed { // by the write of the ping
		return
	}
	if s.conn.Backlogged() {
		e := s.ensureExtra()
		if e.backlogSince = cmp.Or(e.backlogSince, now); now+1-e.backlogSince >= limits.backlog { // +1: it began before the tick that found it
			s.close(wire.CloseSlow, "", 0)
			return
		}
	} else {
		s.resetBacklog()
		s.inbox.retry(s)
		s.retryPages()
		s.retryBackendSubs()
	}
	if s.mustRenew {
		sh.renewNow(s)
	}
	s.dropFullBuckets()
}

// countDelivered counts messages. The next tick adds them to the metrics.
func (sh *shard) countDelivered(n int) {
	if sh.delivered == 0 {
		sh.tickBy(sh.m.currentTick.Load() + 1)
	}
	sh.delivered += n
}
