package linear

import (
	"context"
	"flag"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/internal/longtest"
	"switchboard/internal/state"
	"switchboard/queue"
)

var (
	oneSeed   = flag.Int64("seed", -1, "run this seed only")
	manySeeds = flag.Uint64("seeds", longtest.Seeds(6, 30), "how many histories to check over the store in memory")
)

// eachSeed runs a test for each seed.
func eachSeed(t *testing.T, seeds uint64, run func(t *testing.T, seed uint64) (wrong string)) {
	t.Helper()
	first, last := uint64(0), seeds
	if *oneSeed >= 0 {
		first, last = uint64(*oneSeed), uint64(*oneSeed)+1
	}
	for seed := first; seed < last; seed++ {
		if wrong := run(t, seed); wrong != "" {
			t.Fatalf("seed %d (its interleaving is not repeatable): %s", seed, wrong)
		}
	}
}

// newWorkload returns eight clients that share one channel.
func newWorkload(seed uint64) workload {
	r := rand.New(rand.NewPCG(seed, 99))
	return workload{
		seed: seed, clients: 8, calls: 150, lease: time.Duration(1+r.IntN(20)) * time.Millisecond, owners: r.IntN(3) > 0,
		Limits: state.Limits{Fields: []int{0, 5, 7}[r.IntN(3)], Bytes: []int{0, 60}[r.IntN(2)], Owned: []int{0, 1, 2}[r.IntN(3)]},
	}
}

// steppedClock is a clock that each reading may advance.
type steppedClock struct{ ms atomic.Int64 }

func newSteppedClock() *steppedClock {
	c := new(steppedClock)
	c.ms.Store(time.Now().UnixMilli())
	return c
}

// Now advances the clock by 0 to 2 ms.
func (c *steppedClock) Now() time.Time {
	return time.UnixMilli(c.ms.Add(max(0, rand.Int64N(8)-5)))
}

func newMemory() *queue.Memory {
	return queue.NewMemory(queue.Options{Now: newSteppedClock().Now}, nil)
}

// yielding is a store whose calls overlap more often.
type yielding struct{ *queue.Memory }

func (y yielding) AppendChannel(ctx context.Context, push queue.ChannelPush) (queue.Appended, error) {
	runtime.Gosched()
	defer runtime.Gosched()
	return y.Memory.AppendChannel(ctx, push)
}

func (y yielding) ReadStates(ctx context.Context, reads []queue.StateRead) []queue.Outcome[queue.StatePage] {
	runtime.Gosched()
	defer runtime.Gosched()
	return y.Memory.ReadStates(ctx, reads)
}

// TestMemory checks histories over the store in memory. All outcomes of updates must occur in them.
func TestMemory(t *testing.T) {
	outcomes := map[string]int{}
	eachSeed(t, *manySeeds, func(t *testing.T, seed uint64) string {
		q, h := newMemory(), newHistory()
		newWorkload(seed).run(t.Context(), h, yielding{q})
		h.count(outcomes)
		return h.check(readLog(t, q), nil)
	})
	t.Log(outcomes)
	for _, outcome := range []string{
		"accepted", "duplicate", "conflict", "full", "limit", "not_found", "bad_request", "too_large", "forbidden", "unavailable",
		"away", "back", "left", "stale", "refused with an entry", "page", "sweep", "overlapping",
	} {
		if outcomes[outcome] == 0 && *oneSeed < 0 {
			t.Errorf("no history has the outcome %q", outcome)
		}
	}
}

// count counts the outcomes of a history.
func (h *history) count(outcomes map[string]int) {
	for _, c := range h.calls {
		if c.end > c.begin+1 {
			outcomes["overlapping"]++
		}
		switch {
		case !c.answered():
			outcomes["no answer"]++
		case c.kind == read:
			outcomes["page"]++
		case c.kind == ownerStep:
			c.countStep(outcomes)
		case c.kind == sweep && c.appended.ID > 0:
			outcomes["sweep"]++
		case c.kind != update:
		case c.appended.Duplicate:
			outcomes["duplicate"]++
		case c.refusal == nil:
			outcomes["accepted"]++
		default:
			outcomes[string(c.refusal.Err.Code)]++
			if c.appended.ID > 0 {
				outcomes["refused with an entry"]++
			}
		}
		if c.durable {
			outcomes["durable"]++
		}
	}
}

// countStep counts the outcomes of a step of an owner.
func (c *call) countStep(outcomes map[string]int) {
	if c.stale {
		outcomes["stale"]++
	}
	countEntry(c.appended.Data, outcomes)
}

// countEntry counts the fields in an entry that an owner's end or return has changed.
func countEntry(data []byte, outcomes map[string]int) {
	e, err := state.DecodeEntry(data)
	if err != nil {
		return
	}
	outcomes["away"] += len(e.Away)
	outcomes["back"] += len(e.Back)
	for _, reason := range e.Gone {
		outcomes[reason]++
	}
}
