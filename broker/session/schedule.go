package session

import (
	"cmp"
	"time"

	"switchboard/internal/wire"
)

// Each shard knows the tick at which each of its sessions must be checked next, and runs only if
// one is due. Checking all of 15,000 sessions and their sockets at every tick took 2 ms per second.
// Waking a loop that had nothing to do took 0.3 to 1 ms. The functions here run on the shard's
// loop.

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

// retryComparisons repeats the comparisons that failed, each with pauses of its own.
func (m *Manager) retryComparisons() {
	var list []*Session
	for _, client := range m.comparisons.Tick() {
		if s := m.clients.get(client); s != nil {
			list = append(list, s)
		} else {
			m.comparisons.Done(client)
		}
	}
	if len(list) == 0 {
		return
	}
	m.opts.Pool.Go(func() {
		if err := m.compare(m.storeContext(), list, 0); err != nil {
			m.opts.Logger.Warn().Err(err).Msg("queues of clients not compared; a later tick tries again")
		}
	})
}

// maxTick is the longest expected time between two ticks, in seconds. After a longer time the
// process was suspended, or the clock was set.
const maxTick = 3

// Tick does the periodic work of all sessions. It must be called once a second.
func (m *Manager) Tick() {
	now, unix := m.currentTick.Add(1), time.Now().Unix()
	suspended := unix-m.lastTick.Swap(unix) > maxTick // the schedule of token expiries is wrong: check all sessions
	m.binder.Tick()
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

// renewDue renews the bindings of the next group if it is due. It returns the tick at which the
// group after that is due.
func (sh *shard) renewDue(now uint32) (next uint32) {
	r, n := &sh.renewal, len(sh.sessions)
	if now < r.nextTick {
		return r.nextTick
	}
	var group []*Session
	for range r.groupSize(now, sh.renewalTicks(), n) {
		r.position = (r.position + 1) % n
		if s := sh.sessions[r.position]; s.state == open {
			group = append(group, s)
		}
	}
	sh.renewLater(group, false, func() {})
	return r.nextTick
}
