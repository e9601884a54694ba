package janitor

import (
	"cmp"
	"time"

	"switchboard/internal/leader"
	"switchboard/janitor/task"
)

// lookEvery is how often a janitor looks whether it leads the rounds of a kind.
const lookEvery = time.Second

// schedule decides when a kind of rounds is due. Only its loop uses it.
type schedule struct {
	every, calm time.Duration
	parts       func() int
	lease       *leader.Lease // nil if this janitor makes the rounds alone
	epoch       func() uint64 // of the store

	leads bool      // at the last look
	seen  uint64    // the epoch
	lost  bool      // the store may have lost something since the last complete round
	left  int       // rounds until all parts were looked at
	last  time.Time // begin of the last complete round
}

func newSchedule(r task.Round, lease *leader.Lease, epoch func() uint64) *schedule {
	if epoch == nil {
		epoch = func() uint64 { return 0 }
	}
	return &schedule{every: r.Every, calm: cmp.Or(r.Calm, r.Every), parts: r.Parts, lease: lease, epoch: epoch, lost: true}
}

// addSchedules adds a schedule for each kind of rounds that one janitor makes for all.
func (j *Janitor) addSchedules() {
	if j.opts.DryRun {
		j.opts.Leases = nil
	}
	j.schedules = map[string]*schedule{}
	for _, r := range append([]task.Round{{Name: queues, Every: j.opts.QueuesEvery}, {Name: states, Every: j.opts.StatesEvery}}, j.opts.Rounds...) {
		j.schedules[r.Name] = newSchedule(r, j.opts.Leases.Add(r.Name), j.opts.Epoch)
	}
}

// begins reports whether this janitor leads now, and did not at the last look. Then the first round
// follows at once: it may be late, and the former leader may have been killed in it.
func (s *schedule) begins() bool {
	before := s.leads
	s.leads = s.lease.Leads()
	if !s.leads || before {
		return false
	}
	s.lost = true // a failover may have been noticed by the former leader only
	return true
}

// isDue reports whether a round begins now.
func (s *schedule) isDue(now time.Time) bool {
	if epoch := s.epoch(); epoch != s.seen {
		s.seen, s.lost = epoch, true
	}
	return s.calm == s.every || s.lost || s.left > 0 || now.Sub(s.last) >= s.calm
}

// ended notes a complete round. After a loss another round looks at least once more: the change may
// come before the failover is complete.
func (s *schedule) ended(begun time.Time) {
	s.last = begun
	if !s.lost {
		s.left = max(0, s.left-1)
		return
	}
	s.lost, s.left = false, 1
	if s.parts != nil {
		s.left = max(1, s.parts())
	}
}
