package main

import (
	"context"
	"math"
	"os"
	"time"

	"github.com/rs/zerolog"

	"switchboard/configs"
)

// processorsTick is how often the broker looks whether its CPU quota or its processors have
// changed.
const processorsTick = 30 * time.Second

// machine is the CPU time that this process may use.
type machine struct {
	cpus  int     // processors that the scheduler may put it on
	quota float64 // of its cgroups, in processors; 0 for none
}

// limited says whether the quota is less than the processors can give.
func (m machine) limited() bool { return m.quota > 0 && m.quota < float64(m.cpus) }

// share is the default of GOMAXPROCS: see runtime.defaultGOMAXPROCS.
func (m machine) share() int {
	if !m.limited() {
		return m.cpus
	}
	return min(m.cpus, max(2, int(math.Ceil(m.quota))))
}

// processors decides how many event loops there are, and sets GOMAXPROCS to that and some places
// more. An event loop that waits for its sockets or writes to them holds a place. Where the loops
// hold all places, the runtime wakes every 20 µs to take one back for other work.
//
// Without a quota each processor has a loop and a spare place. With 1,000 subscribers, 16
// publishers and two processors, 2 / 3 / 4 places cost 0.58 / 0.37 / 0.33 µs of CPU per delivery
// and 34,000 / 3,000 / 2,500 such wakes. A single push costs 89 / 95 / 77 µs.
//
// Under a quota there are no spare places, since more threads at once only use it up earlier in
// each period. Instead one of the places has no loop. On two processors shared with other work, as
// 2 loops with 4 places / 2 with 2 / 1 with 2 (now), medians of five runs: 2,000 connections and
// 7,000 pushes, 1,000 a second, cost 1.40 / 1.68 / 1.19 s of CPU under a quota of one processor,
// and no run was throttled. Under a quarter of a processor (six runs) they cost 1.42 / 1.61 / 1.23
// s and the process was throttled for 0.45 / 0.61 / 0.19 s, and for 1.6 / 0.7 / 0.8 s with 16
// publishers on 1,000 subscribers (three runs). The latencies at the 99th percentile differed by
// less than the noise.
type processors struct {
	loops int
	fixed bool // by GOMAXPROCS in the environment
	spare int  // see configs.Runtime.Spare
	look  func() machine
	set   func(n int) (before int)
}

// newProcessors sets GOMAXPROCS, unless it is given in the environment.
func newProcessors(spare int, look func() machine, set func(int) int) *processors {
	p := &processors{spare: spare, look: look, set: set}
	if os.Getenv("GOMAXPROCS") != "" {
		p.loops, p.fixed = set(0), true
		return p
	}
	m := look()
	if p.loops = m.share(); p.sparePlaces(m) == 0 {
		p.loops = max(1, p.loops-1)
	}
	set(p.places(m))
	return p
}

func (p *processors) sparePlaces(m machine) int {
	switch {
	case p.spare != configs.AutoSpare:
		return p.spare
	case m.limited():
		return 0
	}
	return m.cpus
}

// places is what GOMAXPROCS should be. The number of loops stays what it was at the start. At least
// one place is left beside them, even if the quota has become smaller.
func (p *processors) places(m machine) int {
	return max(m.share()+p.sparePlaces(m), p.loops+1)
}

// follow keeps GOMAXPROCS in step with the machine until ctx ends. The runtime does not do so
// itself once it was set.
func (p *processors) follow(ctx context.Context, log zerolog.Logger) error {
	if p.fixed {
		return nil
	}
	tick := time.NewTicker(processorsTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		m := p.look()
		if n, before := p.places(m), p.set(0); n != before {
			p.set(n) // stops the world: only when it changes
			log.Info().Int("from", before).Int("to", n).Int("processors", m.cpus).Float64("quota", m.quota).
				Int("event_loops", p.loops).Msg("GOMAXPROCS follows the CPU quota; the event loops stay until the next start")
		}
	}
}
