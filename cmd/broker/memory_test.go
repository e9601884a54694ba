package main

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhenMemoryIsGivenBack(t *testing.T) {
	const mb = 1 << 20
	before := memory{allocated: 100 * mb, live: 16 * mb}
	for name, test := range map[string]struct {
		now  memory
		want bool
	}{
		"much is spare":         {memory{100 * mb, 16 * mb, 6 * mb}, true},
		"little is spare":       {memory{100 * mb, 16 * mb, 5 * mb}, false},
		"it works":              {memory{101 * mb, 16 * mb, 90 * mb}, false},
		"it hardly works":       {memory{100*mb + mb/4, 16 * mb, 90 * mb}, true},
		"little for so much":    {memory{100 * mb, 1000 * mb, 90 * mb}, false},
		"hardly, for so much":   {memory{110 * mb, 1000 * mb, 900 * mb}, true},
		"nothing lives, or did": {memory{100 * mb, 0, 0}, false},
	} {
		if got := test.now.quiet(before) && test.now.worth(); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// TestMemoryIsGivenBack holds 64 MB and lets go of them.
func TestMemoryIsGivenBack(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	held := make([]byte, 64<<20)
	runtime.KeepAlive(held)
	runtime.GC()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = tendMemory(ctx) }()
		<-time.After(3 * memoryTick)
	})
	if m := readMemory(); m.spare > 32<<20 {
		t.Errorf("%d MB are spare", m.spare>>20)
	}
}

func TestTheOperatorDecidesOnMemory(t *testing.T) {
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOGC", "")
			t.Setenv("GOMEMLIMIT", "")
			t.Setenv(name, "100")
			if err := tendMemory(t.Context()); err != nil || t.Context().Err() != nil { // it returns at once
				t.Error(err)
			}
		})
	}
}
