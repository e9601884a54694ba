package sim

import (
	"flag"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/internal/longtest"
)

var (
	oneSeed   = flag.Int64("seed", -1, "run this seed only, and print its trace")
	manySeeds = flag.Uint64("seeds", longtest.Seeds(80, 400), "how many seeds to run; half of the runs have states")
	sameSeeds = flag.Uint64("same", longtest.Seeds(24, 100), "how many seeds to run twice")
	steps     = flag.Int("steps", 250, "how many steps a run has before the final checks")
)

// simulate runs one seed.
func simulate(t *testing.T, seed uint64) (w *world) {
	synctest.Test(t, func(*testing.T) {
		w = newWorld(seed)
		defer w.stop()
		w.clockLag = time.Millisecond // so binds within a millisecond come late, and are repeated
		for range *steps {
			if w.failed() {
				return
			}
			w.step()
		}
		w.finish()
	})
	return w
}

func TestSimulation(t *testing.T) {
	first, last := uint64(0), *manySeeds
	if *oneSeed >= 0 {
		first, last = uint64(*oneSeed), uint64(*oneSeed)+1
	}
	for seed := first; seed < last; seed++ {
		w := simulate(t, seed)
		if w.violation != "" {
			t.Fatalf("%s\n\nseed %d (%v): %s\ngo test ./broker/sim -run TestSimulation -seed=%d -steps=%d",
				strings.Join(w.trace, "\n"), seed, w.profile, w.violation, seed, *steps)
		}
		if *oneSeed >= 0 {
			t.Log(strings.Join(w.trace, "\n"))
		}
	}
}

// TestSameSeedSameRun checks that two runs of a seed have the same trace.
func TestSameSeedSameRun(t *testing.T) {
	for seed := range *sameSeeds {
		a, b := simulate(t, seed), simulate(t, seed)
		if a.hash() == b.hash() {
			continue
		}
		for i := range min(len(a.trace), len(b.trace)) {
			if a.trace[i] != b.trace[i] {
				t.Fatalf("seed %d: after\n%s\none run goes on with\n%s\nand the other with\n%s", seed,
					strings.Join(a.trace[max(0, i-20):i], "\n"), a.trace[i], b.trace[i])
			}
		}
		t.Fatalf("seed %d: one run has %d lines, the other %d", seed, len(a.trace), len(b.trace))
	}
}
