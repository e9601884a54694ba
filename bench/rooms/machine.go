package main

import (
	"fmt"
	"runtime"
	"time"

	"github.com/prometheus/procfs"

	"switchboard/bench/usage"
)

// machine is the machine and the load of a run. What cannot be read stays zero.
type machine struct {
	begun      time.Time
	loadBefore float64
	cpu        procfs.CPUStat
}

func beginMachine() machine {
	m := machine{begun: time.Now()}
	m.loadBefore, m.cpu = readLoad()
	return m
}

// readLoad returns the load average of a minute, and the time of the processors since the start.
func readLoad() (load float64, cpu procfs.CPUStat) {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, cpu
	}
	if average, err := proc.LoadAvg(); err == nil {
		load = average.Load1
	}
	if stat, err := proc.Stat(); err == nil {
		cpu = stat.CPUTotal
	}
	return load, cpu
}

// String describes the machine, the versions and the load since the run began.
func (m machine) String() string {
	load, cpu := readLoad()
	busy := func(c procfs.CPUStat) float64 { return c.User + c.Nice + c.System + c.IRQ + c.SoftIRQ + c.Steal }
	all := func(c procfs.CPUStat) float64 { return busy(c) + c.Idle + c.Iowait }
	share := func(part float64) float64 { return 100 * part / max(1, all(cpu)-all(m.cpu)) }
	shared := ""
	if m.loadBefore > 1 {
		shared = " Other work was running on the machine already."
	}
	return fmt.Sprintf("%d × %s, %s, %s. Commit %s. The load average was %.1f before the run and %.1f after it; "+
		"the processors were %.0f %% busy, and %.1f %% of their time was taken by the host (steal). The run took %v.%s",
		runtime.NumCPU(), usage.Processor(), runtime.Version(), "Redis "+usage.RedisVersion(), usage.Output("git", "rev-parse", "--short=12", "HEAD"),
		m.loadBefore, load, share(busy(cpu)-busy(m.cpu)), share(cpu.Steal-m.cpu.Steal), time.Since(m.begun).Round(time.Second), shared)
}
