package session

import "time"

const (
	// renewalGroup is about how many bindings a group has.
	renewalGroup = 64
	// maxRenewalPause is the most ticks between two groups, even with few sessions.
	maxRenewalPause = 60
)

// renewalSchedule decides when each binding of a shard is renewed. It goes through the shard's
// sessions in the order of their index, so that each binding is renewed once per Timing.Renewal.
// Bindings are renewed in groups: those of a group share round trips, and the groups are spread
// over the interval. Only the shard's loop uses it.
type renewalSchedule struct {
	nextTick uint32 // of the next group
	lastTick uint32 // of the previous group
	carry    uint64 // remainder of the last division in groupSize, in sessions × ticks
	position int    // the index in shard.sessions of the last renewed session
}

// begin starts the schedule when the shard gets its first session.
func (r *renewalSchedule) begin(now uint32) { *r = renewalSchedule{nextTick: now, lastTick: now} }

// groupSize returns how many of n sessions are due at now, and sets nextTick. every is the renewal
// interval in ticks.
func (r *renewalSchedule) groupSize(now, every uint32, n int) int {
	r.carry += uint64(n) * uint64(now-r.lastTick)
	size := min(r.carry/uint64(every), uint64(n))
	r.carry %= uint64(every)
	pause := uint64(every) * renewalGroup / uint64(n)
	r.lastTick, r.nextTick = now, now+uint32(max(1, min(pause, maxRenewalPause, uint64(every))))
	return int(size)
}

// renewalTicks returns the renewal interval in ticks.
func (sh *shard) renewalTicks() uint32 { return max(1, uint32(sh.m.opts.Timing.Renewal/time.Second)) }

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
