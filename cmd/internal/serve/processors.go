package serve

import (
	"context"
	"math"
	"os"
	"time"

	"github.com/rs/zerolog"

	"switchboard/broker/work"
	"switchboard/configs"
)

// processorsTick is the interval of checks for a changed CPU quota or number of processors.
const processorsTick = 30 * time.Second

// machine is the CPU time that this process may use.
type machine struct {
	cpus  int     // processors that the scheduler may use for it
	quota float64 // CPU quota of its cgroups, in processors; 0 for none
}

// limited reports whether the quota is less than the processors.
func (m machine) limited() bool { return m.quota > 0 && m.quota < float64(m.cpus) }

// share returns the default of GOMAXPROCS, like runtime.defaultGOMAXPROCS.
func (m machine) share() int {
	if !m.limited() {
		return m.cpus
	}
	return min(m.cpus, max(2, int(math.Ceil(m.quota))))
}

// processors determines the number of event loops and sets GOMAXPROCS above it. GOMAXPROCS is the
// number of Ps of the Go scheduler, and a goroutine needs a P to run. An event loop that waits for
// its sockets or writes to them holds a P. If the loops hold all Ps, the runtime wakes every 20 µs
// to take one back for other work.
//
// Without a quota each processor has a loop and a spare P. With 1,000 subscribers, 16 publishers
// and two processors, 2 / 3 / 4 Ps cost 0.58 / 0.37 / 0.33 µs of CPU per delivery and cause
// 34,000 / 3,000 / 2,500 such wakes. A single push costs 89 / 95 / 77 µs.
//
// With a quota there are no spare Ps: more threads would only use up the quota of each period
// earlier. One P stays free because there is one loop fewer.
//
// These measurements led to that choice. The machine had two processors and other work. Each
// triple has the results of 2 loops with 4 Ps, 2 loops with 2 Ps, and 1 loop with 2 Ps (the
// choice). The load of the first two rows was 2,000 connections and 7,000 pushes, 1,000 a second;
// that of the last row was 16 publishers on 1,000 subscribers.
//
//	quota 1 processor    CPU 1.40 / 1.68 / 1.19 s, never throttled (medians of five runs)
//	quota 1/4 processor  CPU 1.42 / 1.61 / 1.23 s, throttled for 0.45 / 0.61 / 0.19 s (six runs)
//	16 publishers        throttled for 1.6 / 0.7 / 0.8 s (quota 1/4 processor, three runs)
//
// The latencies at the 99th percentile differed by less than the noise.
type processors struct {
	loops int
	fixed bool // GOMAXPROCS is set in the environment
	spare int  // see configs.Runtime.Spare
	read  func() machine
	set   func(n int) (before int) // runtime.GOMAXPROCS
}

// newProcessors sets GOMAXPROCS, unless it is set in the environment.
func newProcessors(spare int, read func() machine, set func(int) int) *processors {
	p := &processors{spare: spare, read: read, set: set}
	if os.Getenv("GOMAXPROCS") != "" {
		p.loops, p.fixed = set(0), true
		return p
	}
	m := read()
	if p.loops = m.share(); p.sparePs(m) == 0 {
		p.loops = max(1, p.loops-1)
	}
	set(p.procs(m))
	return p
}

func (p *processors) sparePs(m machine) int {
	switch {
	case p.spare != configs.AutoSpare:
		return p.spare
	case m.limited():
		return 0
	}
	return m.cpus
}

// procs returns the value for GOMAXPROCS. The number of loops never changes. GOMAXPROCS is at
// least one more, even if the quota has become smaller.
func (p *processors) procs(m machine) int {
	return max(m.share()+p.sparePs(m), p.loops+1)
}

// follow adjusts GOMAXPROCS to changes of the machine until ctx ends. The runtime stops doing so
// itself after the first call of runtime.GOMAXPROCS.
func (p *processors) follow(ctx context.Context, log zerolog.Logger) error {
	if p.fixed {
		return nil
	}
	return work.Every(ctx, processorsTick, func() {
		m := p.read()
		if n, before := p.procs(m), p.set(0); n != before {
			p.set(n) // stops the world, so only after a change
			log.Info().Int("from", before).Int("to", n).Int("processors", m.cpus).Float64("quota", m.quota).
				Int("event_loops", p.loops).Msg("GOMAXPROCS was adjusted to the machine; the number of event loops changes only at a restart")
		}
	})
}
