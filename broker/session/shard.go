package session

import (
	"time"

	"switchboard/broker/loop"
	"switchboard/internal/wire"
)

// shard is the sessions of one loop. All of it belongs to the loop.
type shard struct {
	m         *Manager
	loop      *loop.Loop
	sessions  []*Session
	now       uint32 // ticks since the start, one a second
	delivered int    // messages since the last tick

	wishing map[*Session]*wish // those that are being connected

	gathering *Session     // whose writes wait for the end of its task, or nil
	gathered  []wire.Frame // what it has written
	bytes     int          // of that
}

func (sh *shard) add(s *Session) {
	s.index = int32(len(sh.sessions))
	sh.sessions = append(sh.sessions, s)
	sh.m.count.Add(1)
}

func (sh *shard) remove(s *Session) {
	last := len(sh.sessions) - 1
	sh.sessions[s.index] = sh.sessions[last]
	sh.sessions[s.index].index = s.index
	sh.sessions[last] = nil
	sh.sessions = sh.sessions[:last]
	sh.m.count.Add(-1)
}

// tick walks all sessions: a pointer and a few comparisons each, less than a timer costs.
// One in every refresh interval has its binding renewed, so that renewal never comes in a burst.
func (sh *shard) tick() {
	sh.now++
	unix := time.Now().Unix()
	every := max(1, uint32(sh.m.opts.Refresh/time.Second))
	for i := len(sh.sessions) - 1; i >= 0; i-- { // backwards: closing moves the last into the gap
		s := sh.sessions[i]
		s.tick(sh.now, unix)
		if s.state == open && (s.unasserted || (uint32(i)+sh.now)%every == 0) {
			s.assertLater(s.unasserted, func() {})
		}
	}
	if sh.delivered > 0 {
		sh.m.opts.Metrics.Delivered(sh.delivered)
		sh.delivered = 0
	}
}
