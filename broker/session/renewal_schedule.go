package session

import "time"

const (
	// renewGroup is how many bindings are renewed together, about.
	renewGroup = 64
	// renewEvery is the most ticks between two groups, however few sessions there are.
	renewEvery = 60
)

// renewal is the walk over a shard's sessions that renews each binding once in every refresh interval. A group
// goes at a time, so that neither each has its own round trips nor all come at once.
type renewal struct {
	at   uint32 // the tick of the next group
	last uint32 // that of the one before
	part uint64 // what was owed then and was less than one session, in sessions × ticks
	turn int    // whose turn it is
}

func (r *renewal) begin(now uint32) { *r = renewal{at: now, last: now} }

// refresh is the interval of renewals in ticks.
func (sh *shard) refresh() uint32 { return max(1, uint32(sh.m.opts.Timing.Renewal/time.Second)) }

// renew renews the bindings of a group, if it is time, and returns when the next is due.
func (sh *shard) renew(now uint32) (next uint32) {
	r, n := &sh.renewal, len(sh.sessions)
	if now < r.at {
		return r.at
	}
	every := sh.refresh()
	r.part += uint64(n) * uint64(now-r.last)
	group := min(r.part/uint64(every), uint64(n))
	r.part %= uint64(every)
	var some []*Session
	for range group {
		r.turn = (r.turn + 1) % n
		if s := sh.sessions[r.turn]; s.state == open {
			some = append(some, s)
		}
	}
	sh.assertLater(some, false, func() {})
	wait := uint64(every) * renewGroup / uint64(n)
	r.last, r.at = now, now+uint32(max(1, min(wait, renewEvery, uint64(every))))
	return r.at
}
