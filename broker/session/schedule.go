package session

import (
	"cmp"
	"math"
	"time"

	"switchboard/internal/wire"
)

// Each shard knows the tick at which each of its sessions must be checked next, and runs only if
// one is due. A check of each of 15,000 sessions, with the state of its socket, took 2 ms per
// second; to wake a loop with nothing due took 0.3 to 1 ms. The functions here run on the shard's
// loop.

// never is a tick that does not come.
const never = math.MaxUint32

// tickBy has the shard run at the given tick at the latest.
func (sh *shard) tickBy(at uint32) {
	if at < sh.nextTick.Load() {
		sh.nextTick.Store(at)
	}
}

// checkBy has s checked at the given tick at the latest.
func (s *Session) checkBy(at uint32) {
	sh := s.shard
	if s.state != closed && at < sh.checkAt[s.index] {
		sh.checkAt[s.index] = at
		sh.tickBy(at)
	}
}

// checkNextTick has s checked by the next tick.
func (s *Session) checkNextTick() { s.checkBy(s.m.currentTick.Load() + 1) }

// cancelConnectCheck replaces the check for the connect timeout, once s is open, by the check that
// an open session needs. 15,000 needless checks 10 s after the connects took 15 ms.
func (s *Session) cancelConnectCheck() {
	now := s.m.currentTick.Load()
	if s.state == open && s.shard.checkAt[s.index] > now+1 {
		s.shard.checkAt[s.index] = never
		s.checkBy(s.nextCheck(now, time.Now().Unix()))
	}
}

// nextCheck returns the tick at which s must be checked, given its present state.
func (s *Session) nextCheck(now uint32, unix int64) uint32 {
	ping, idle := s.liveness()
	at := later(s.lastHeard, ping)
	switch {
	case s.state != open:
		return s.lastHeard + s.m.ticks.connect
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

// expiryCheck is the most ticks between two checks of a token's expiry: the clock may be set in
// between.
const expiryCheck = 25

// liveness returns after how many ticks of silence the client is pinged, and after how many the
// connection is closed. never means not at all.
func (s *Session) liveness() (ping, idle uint32) {
	l := s.conn.Liveness()
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

// checkAll has the next tick check all sessions.
func (sh *shard) checkAll() {
	clear(sh.checkAt)
	sh.tickBy(0)
}

// tick checks the sessions that are due and renews the bindings that are due. It reads only checkAt
// for the other sessions.
func (sh *shard) tick() {
	now, unix := sh.m.currentTick.Load(), time.Now().Unix()
	next := uint32(never)
	sh.nextTick.Store(never)                     // the calls of tickBy and checkBy below set it again
	for i := len(sh.sessions) - 1; i >= 0; i-- { // backwards: a session that closes is replaced by the last
		if sh.checkAt[i] <= now {
			s := sh.sessions[i]
			sh.checkAt[i] = never
			s.check(now, unix)
			s.checkBy(s.nextCheck(now, unix))
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
func (s *Session) check(now uint32, unix int64) {
	o := &s.m.ticks
	silent := now - s.lastHeard
	ping, idle := s.liveness()
	switch {
	case s.state != open:
		if silent >= o.connect {
			s.close(wire.CloseBadRequest, "no connect in time", 0)
		}
		return
	case s.expires != 0 && unix >= int64(s.expires):
		s.close(wire.CloseExpired, "the token ran out", 0)
		return
	case silent >= idle:
		s.close(wire.CloseIdle, "no sign of life", 0)
		return
	case silent >= ping && !s.pinged:
		if s.conn.Ping(); idle == never { // no answer will come: the next ping is due as late as this one was
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
		if e.backlogSince = cmp.Or(e.backlogSince, now); now+1-e.backlogSince >= o.backlog {
			s.close(wire.CloseSlow, "unread for too long", 0)
			return
		}
	} else {
		s.resetBacklog()
		s.inboxRetry()
	}
	if s.mustRenew {
		s.renewLater()
	}
	s.dropFullBuckets()
}

// resetBacklog resets the counters of a backlog.
func (s *Session) resetBacklog() {
	if s.extra != nil {
		s.extra.backlogSince, s.extra.replyBytes = 0, 0
		s.dropEmptyExtra()
	}
}
