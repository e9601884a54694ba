package main

import (
	"fmt"
	"runtime"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"switchboard/bench/report"
	"switchboard/bench/usage"
	"switchboard/internal/testbed"
)

// describeRun records the versions and the machine. Unknown values stay empty.
func describeRun(r *report.Run) {
	r.Go = runtime.Version()
	r.Commit, r.Redis = testbed.Commit(), testbed.RedisVersion()
	r.Machine = fmt.Sprintf("%d × %s, %s, Linux %s", runtime.NumCPU(), usage.Processor(), testbed.Memory(), kernel())
}

// processorTime is the time of the machine's processors since its start, in seconds.
type processorTime struct {
	steal float64 // the host ran something else while a process here was ready
	all   float64
}

// readProcessorTime reads /proc/stat. It returns zero if there is none.
func readProcessorTime() processorTime {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return processorTime{}
	}
	stat, err := proc.Stat()
	if err != nil {
		return processorTime{}
	}
	cpu := stat.CPUTotal // Guest is in User, GuestNice in Nice
	return processorTime{
		cpu.Steal, cpu.User + cpu.Nice + cpu.System + cpu.Idle + cpu.Iowait + cpu.IRQ + cpu.SoftIRQ + cpu.Steal,
	}
}

// stealSince returns the share of stolen time since before, in percent.
func (p processorTime) stealSince(before processorTime) float64 {
	if p.all <= before.all {
		return 0
	}
	return 100 * (p.steal - before.steal) / (p.all - before.all)
}

func kernel() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(name.Release[:])
}
