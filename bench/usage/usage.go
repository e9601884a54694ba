// Package usage reads the CPU time and memory of processes, and describes the machine.
package usage

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// CPU returns the user and system time of processes, to the nanosecond. It reads the CPU clock of
// each process. /proc is too coarse: it counts in steps of 10 ms, and an idle broker uses less than
// that in a second.
func CPU(pids ...int) (sum time.Duration, err error) {
	const sched = 2 // CPUCLOCK_SCHED in the kernel's posix-timers.h
	for _, pid := range pids {
		var ts unix.Timespec
		if err := unix.ClockGettime(int32(^pid<<3|sched), &ts); err != nil {
			return 0, fmt.Errorf("CPU of process %d: %w", pid, err)
		}
		sum += time.Duration(ts.Nano())
	}
	return sum, nil
}

// OwnCPU returns the user and system time of this process.
func OwnCPU() (time.Duration, error) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("getrusage: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// Resident returns the resident set of processes in bytes. It reads smaps_rollup, which is exact,
// or on older kernels statm, which may lag by a few pages per thread.
func Resident(pids ...int) (sum int64, err error) {
	for _, pid := range pids {
		n, err := resident(pid)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

func resident(pid int) (int64, error) {
	if raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid)); err == nil {
		for line := range bytes.Lines(raw) {
			if rest, ok := bytes.CutPrefix(line, []byte("Rss:")); ok {
				kb, err := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte("kB")))), 10, 64)
				return kb << 10, err
			}
		}
	}
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, fmt.Errorf("memory of process %d: %w", pid, err)
	}
	fields := bytes.Fields(raw)
	if len(fields) < 2 {
		return 0, fmt.Errorf("memory of process %d: statm is too short", pid)
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	return pages * int64(os.Getpagesize()), err
}

const (
	readInterval = time.Second
	maxReadings  = 30
)

// Settle reads a size until it stops changing: until two successive readings differ by less than a
// quarter percent. wait waits between readings. settled is false if the size kept changing.
func Settle(ctx context.Context, read func() (int64, error), wait func(context.Context, time.Duration) error) (size int64, settled bool, err error) {
	if size, err = read(); err != nil {
		return 0, false, err
	}
	for range maxReadings {
		if err := wait(ctx, readInterval); err != nil {
			return 0, false, err
		}
		before := size
		if size, err = read(); err != nil {
			return 0, false, err
		}
		if diff := max(size-before, before-size); diff < size/400 {
			return size, true, nil
		}
	}
	return size, false, nil
}
