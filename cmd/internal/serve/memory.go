package serve

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The Go runtime lets garbage grow to the size of the live heap before it collects, and keeps freed
// memory for minutes. A quiet process needs neither the garbage nor the freed memory: 15,000 idle
// connections held 2.1 KB each, and 1.4 KB of that was live.
const (
	memoryTick = 400 * time.Millisecond
	// keptSpare is the spare memory to keep, in addition to a quarter of the live heap.
	keptSpare = 1 << 20
	// releaseShare bounds the time of the releases: at most 1/releaseShare of one processor.
	releaseShare = 100
)

// memory is the state of the heap, in bytes.
type memory struct {
	allocated uint64 // since the start
	live      uint64 // after the last collection
	spare     uint64 // garbage and free memory that the process still holds
}

// quiet reports whether the process allocated little since before.
func (m memory) quiet(before memory) bool {
	return m.allocated-before.allocated < m.live/64+keptSpare/8
}

// releasable reports whether there is enough memory to release.
func (m memory) releasable() bool { return m.spare > m.live/4+keptSpare }

func readMemory() memory {
	s := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(s)
	m := memory{allocated: s[0].Value.Uint64(), live: s[1].Value.Uint64()}
	m.spare = max(s[2].Value.Uint64(), m.live) - m.live + s[3].Value.Uint64()
	return m
}

// releaseMemory returns memory to the system while the process is quiet, until ctx ends. It does
// nothing if the operator has set GOGC or GOMEMLIMIT.
func releaseMemory(ctx context.Context) error {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	tick := time.NewTicker(memoryTick)
	defer tick.Stop()
	var nextRelease time.Time // not before this time
	for before := readMemory(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := readMemory()
		if start := time.Now(); now.quiet(before) && now.releasable() && start.After(nextRelease) {
			debug.FreeOSMemory()
			end := time.Now()
			nextRelease = end.Add(releaseShare * end.Sub(start))
			now = readMemory()
		}
		before = now
	}
}
