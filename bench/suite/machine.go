package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"switchboard/bench/report"
)

// describe enters what was measured, and where. What cannot be found out is left out.
func describe(r *report.Run) {
	r.Go = runtime.Version()
	r.Commit = output("git", "rev-parse", "--short=12", "HEAD")
	if output("git", "status", "--porcelain", "--untracked-files=no") != "" {
		r.Commit += ", with changes"
	}
	for _, word := range strings.Fields(output("redis-server", "--version")) {
		if version, ok := strings.CutPrefix(word, "v="); ok {
			r.Redis = version
		}
	}
	r.Machine = fmt.Sprintf("%d × %s, %s, Linux %s", runtime.NumCPU(), processor(), memory(), kernel())
}

// processorTime is what the machine's processors have done since it started, in seconds.
type processorTime struct {
	stolen float64 // something here wanted to run, and the host ran something of its own
	all    float64
}

// processors reads /proc/stat. Where there is none, nothing was stolen.
func processors() processorTime {
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

// stolenSince is a share of the time, in percent.
func (p processorTime) stolenSince(before processorTime) float64 {
	if p.all <= before.all {
		return 0
	}
	return 100 * (p.stolen - before.stolen) / (p.all - before.all)
}

// output is what a command says in one line, "" when it fails.
func output(name string, args ...string) string {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

func processor() string {
	info, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer info.Close()
	for lines := bufio.NewScanner(info); lines.Scan(); {
		if name, value, _ := strings.Cut(lines.Text(), ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
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
