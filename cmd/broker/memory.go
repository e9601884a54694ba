package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The Go runtime lets garbage grow to the size of what lives before it collects, and keeps what it has freed for
// minutes: 15,000 idle connections held 2.1 KB each where 1.4 live. When nothing happens there is no need for either.
const (
	memoryTick = 400 * time.Millisecond
	// keptSpare is how much may be spare, besides a quarter of what lives.
	keptSpare = 1 << 20
	// giveBackShare is how much of one processor's time giving back may take at most, as 1 to so many.
	giveBackShare = 100
)

// memory is what the runtime says of the heap, in bytes.
type memory struct {
	allocated uint64 // since the start
	live      uint64 // after the last collection
	spare     uint64 // dead or unused, and not given back
}

// quiet says whether the process did little between two looks.
func (m memory) quiet(before memory) bool {
	return m.allocated-before.allocated < m.live/64+keptSpare/8
}

// worth says whether there is much to give back.
func (m memory) worth() bool { return m.spare > m.live/4+keptSpare }

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

// tendMemory gives memory back to the system when the process is quiet, until ctx ends. An operator who has set GOGC or
// GOMEMLIMIT has decided himself.
func tendMemory(ctx context.Context) error {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	tick := time.NewTicker(memoryTick)
	defer tick.Stop()
	var rested time.Time // before it there is no giving back
	for before := readMemory(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := readMemory()
		if start := time.Now(); now.quiet(before) && now.worth() && start.After(rested) {
			debug.FreeOSMemory()
			end := time.Now()
			rested = end.Add(giveBackShare * end.Sub(start))
			now = readMemory()
		}
		before = now
	}
}
