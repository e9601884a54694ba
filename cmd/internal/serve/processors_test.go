package serve

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"switchboard/configs"
)

// fakeMachine is a machine that the test changes.
type fakeMachine struct {
	mu sync.Mutex // guards the fields below
	machine
	procs int   // GOMAXPROCS
	sets  []int // the values that it was set to
}

func (f *fakeMachine) read() machine {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.machine
}

func (f *fakeMachine) change(m machine) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.machine = m
}

func (f *fakeMachine) set(n int) (before int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before = f.procs
	if n > 0 {
		f.procs, f.sets = n, append(f.sets, n)
	}
	return before
}

func TestProcessorsAtTheStart(t *testing.T) {
	t.Setenv("GOMAXPROCS", "")
	for _, c := range []struct {
		cpus         int
		quota        float64
		spare        int
		loops, procs int
	}{
		{cpus: 4, spare: configs.AutoSpare, loops: 4, procs: 8},
		{cpus: 1, spare: configs.AutoSpare, loops: 1, procs: 2},
		{cpus: 64, quota: 4, spare: configs.AutoSpare, loops: 3, procs: 4},
		{cpus: 64, quota: 2.5, spare: configs.AutoSpare, loops: 2, procs: 3},
		{cpus: 64, quota: 0.5, spare: configs.AutoSpare, loops: 1, procs: 2},
		{cpus: 2, quota: 1, spare: configs.AutoSpare, loops: 1, procs: 2},
		{cpus: 2, quota: 2, spare: configs.AutoSpare, loops: 2, procs: 4},   // the quota is not a limit
		{cpus: 1, quota: 0.5, spare: configs.AutoSpare, loops: 1, procs: 2}, // one P besides the loop
		{cpus: 4, spare: 1, loops: 4, procs: 5},
		{cpus: 64, quota: 4, spare: 2, loops: 4, procs: 6},
		{cpus: 4, spare: 0, loops: 3, procs: 4},
	} {
		f := &fakeMachine{machine: machine{c.cpus, c.quota}, procs: c.cpus}
		p := newProcessors(c.spare, f.read, f.set)
		if p.loops != c.loops || f.procs != c.procs {
			t.Errorf("%d processors, quota %v, %d spare: %d loops and %d Ps, want %d and %d",
				c.cpus, c.quota, c.spare, p.loops, f.procs, c.loops, c.procs)
		}
	}
}

// TestProcessorsFollow: the quota and the affinity mask change while the broker runs.
func TestProcessorsFollow(t *testing.T) {
	t.Setenv("GOMAXPROCS", "")
	f := &fakeMachine{machine: machine{cpus: 8, quota: 4}, procs: 8}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := newProcessors(configs.AutoSpare, f.read, f.set)
		var log strings.Builder
		done := make(chan error, 1)
		go func() { done <- p.follow(ctx, zerolog.New(&log)) }()
		for _, c := range []struct {
			machine
			procs int
		}{
			{machine{8, 4}, 4},
			{machine{8, 6}, 6},
			{machine{8, 0}, 16},
			{machine{3, 0}, 6},
			{machine{8, 1}, 4}, // three loops and one more P
		} {
			f.change(c.machine)
			<-time.After(processorsTick)
			synctest.Wait()
			if n := f.set(0); n != c.procs {
				t.Errorf("%+v: %d Ps, want %d", c.machine, n, c.procs)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := strings.Count(log.String(), "GOMAXPROCS was adjusted"); n != 4 {
			t.Errorf("%d lines for 4 changes: %s", n, &log)
		}
	})
	if want := "[4 6 16 6 4]"; fmt.Sprint(f.sets) != want { // each call stops the world
		t.Errorf("GOMAXPROCS was set to %v, want %v", f.sets, want)
	}
}

func TestProcessorsRespectEnvironment(t *testing.T) {
	t.Setenv("GOMAXPROCS", "3")
	f := &fakeMachine{machine: machine{cpus: 8}, procs: 3}
	p := newProcessors(configs.AutoSpare, f.read, f.set)
	if err := p.follow(t.Context(), zerolog.Nop()); err != nil || t.Context().Err() != nil { // it returns at once
		t.Error(err)
	}
	if p.loops != 3 || len(f.sets) > 0 {
		t.Errorf("%d loops, and GOMAXPROCS was set to %v", p.loops, f.sets)
	}
}
