package serve

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

func TestReleaseConditions(t *testing.T) {
	const mb = 1 << 20
	before := memory{allocated: 100 * mb, live: 16 * mb}
	for name, test := range map[string]struct {
		now  memory
		want bool
	}{
		"much spare memory":             {memory{100 * mb, 16 * mb, 6 * mb}, true},
		"little spare memory":           {memory{100 * mb, 16 * mb, 5 * mb}, false},
		"busy":                          {memory{101 * mb, 16 * mb, 90 * mb}, false},
		"nearly idle":                   {memory{100*mb + mb/4, 16 * mb, 90 * mb}, true},
		"little for a large heap":       {memory{100 * mb, 1000 * mb, 90 * mb}, false},
		"nearly idle with a large heap": {memory{110 * mb, 1000 * mb, 900 * mb}, true},
		"an empty heap":                 {memory{100 * mb, 0, 0}, false},
	} {
		if got := test.now.quiet(before) && test.now.releasable(); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// TestMemoryIsReleased: 64 MB of garbage are returned to the system.
func TestMemoryIsReleased(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	held := make([]byte, 64<<20)
	runtime.KeepAlive(held)
	runtime.GC()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = releaseMemory(ctx) }()
		<-time.After(3 * memoryTick)
	})
	if m := readMemory(); m.spare > 32<<20 {
		t.Errorf("%d MB are spare", m.spare>>20)
	}
}

func TestReleaseRespectsEnvironment(t *testing.T) {
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOGC", "")
			t.Setenv("GOMEMLIMIT", "")
			t.Setenv(name, "100")
			if err := releaseMemory(t.Context()); err != nil || t.Context().Err() != nil { // it returns at once
				t.Error(err)
			}
		})
	}
}
