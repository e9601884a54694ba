package main

import (
	"fmt"
	"runtime"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"switchboard/bench/report"
	"switchboard/bench/usage"
)

// describeRun records the versions and the machine. Unknown values stay empty.
func describeRun(r *report.Run) {
	r.Go = runtime.Version()
	r.Commit = usage.Output("git", "rev-parse", "--short=12", "HEAD")
	if usage.Output("git", "status", "--porcelain", "--untracked-files=no") != "" {
		r.Commit += ", with changes"
	}
	r.Redis = usage.RedisVersion()
	r.Machine = fmt.Sprintf("%d × %s, %s, Linux %s", runtime.NumCPU(), usage.Processor(), memory(), kernel())
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

func memory() string {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return "memory unknown"
	}
	return fmt.Sprintf("%.0f GiB", float64(info.Totalram)*float64(info.Unit)/(1<<30))
}

func kernel() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(name.Release[:])
}
