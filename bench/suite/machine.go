package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

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
