package session

import (
	"sync/atomic"

	"switchboard/broker/loop"
)

// shard holds the sessions of one loop. Only the loop uses it, except for nextTick.
type shard struct {
	m        *Manager
	loop     *loop.Loop
	sessions []*Session
	checkAt  []uint32      // by Session.index: the tick at which the session is checked next
	nextTick atomic.Uint32 // the next tick at which the shard must run; only the loop writes it

	renewal   renewalSchedule
	acks      ackBatch
	delivered int // messages since Metrics.Delivered was called

	corked []*Session // that wait for their answers, see corkForAnswer

	connecting map[*Session]*connectJob // the sessions whose clients are being bound; nil for none
	states     map[*Session]*stateUse   // of the sessions that have one; nil for none
	asked      map[*Session]int         // requests that wait for the backend's URL, if there are any
}

func newShard(m *Manager, l *loop.Loop) *shard {
	sh := &shard{m: m, loop: l, asked: make(map[*Session]int)}
	sh.acks.sh = sh
	sh.nextTick.Store(never)
	return sh
}

// add adds a new session.
func (sh *shard) add(s *Session) {
	s.index = int32(len(sh.sessions))
	sh.sessions = append(sh.sessions, s)
	sh.checkAt = append(sh.checkAt, never)
	sh.m.accepted.Add(1)
	if s.index == 0 {
		sh.renewal.begin(s.lastHeard)
		sh.tickBy(s.lastHeard + min(sh.renewalTicks(), maxRenewalPause)) // runs the renewals; the first check may be due much later
	}
}

// remove deletes a session. The last session takes its index.
func (sh *shard) remove(s *Session) {
	last := len(sh.sessions) - 1
	sh.sessions[s.index], sh.checkAt[s.index] = sh.sessions[last], sh.checkAt[last]
	sh.sessions[s.index].index = s.index
	sh.sessions[last] = nil
	sh.sessions, sh.checkAt = sh.sessions[:last], sh.checkAt[:last]
	sh.m.removed.Add(1)
}
