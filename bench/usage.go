package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// tick is the unit of CPU times in /proc (proc(5): clock ticks, 100 a second for every
// architecture that Go runs on).
const tick = 10 * time.Millisecond

// cpuOf is the user and system time that process pid has used, in steps of tick.
func cpuOf(pid int) (time.Duration, error) {
	path := fmt.Sprintf("/proc/%d/stat", pid)
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("CPU of process %d: %w", pid, err)
	}
	// The name in parentheses may hold anything; utime and stime are the 12th and 13th behind it.
	fields := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("CPU of process %d: %s is too short", pid, path)
	}
	user, err1 := strconv.ParseInt(string(fields[11]), 10, 64)
	system, err2 := strconv.ParseInt(string(fields[12]), 10, 64)
	return time.Duration(user+system) * tick, errors.Join(err1, err2)
}

// ownCPU is the user and system time of this process.
func ownCPU() (time.Duration, error) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("getrusage: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// residentOf is the resident set of process pid in bytes. smaps_rollup is exact; statm, for
// kernels without, may lag by a few pages per thread.
func residentOf(pid int) (int64, error) {
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
	settleEvery = time.Second
	settleMost  = 30 // readings
)

// settle reads a size until it has stopped changing: two neighbouring readings that differ by less
// than a quarter percent. wait passes the time between. settled is false when that never came.
func settle(ctx context.Context, read func() (int64, error), wait func(context.Context, time.Duration) error) (size int64, settled bool, err error) {
	if size, err = read(); err != nil {
		return 0, false, err
	}
	for range settleMost {
		if err := wait(ctx, settleEvery); err != nil {
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
