package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"switchboard/bench/report"

	"golang.org/x/sys/unix"
)

const (
	// connectionMemory is the memory of one connection: 9.6 KB in the kernel for both ends, the rest
	// in the broker, Redis and the subscriber.
	connectionMemory = 13 << 10
	// processMemory is the memory of a broker or of a subscriber process, without connections.
	processMemory = 20 << 20
	// minFree is the memory that must stay free. Below it the run ends.
	minFree = 1 << 30
	// checkInterval is the time between two checks of the free memory.
	checkInterval = 500 * time.Millisecond
)

var errMemory = errors.New("not enough memory")

// meminfo returns the value with the name in /proc/meminfo, in bytes.
func meminfo(name string) (int64, error) {
	info, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	defer info.Close()
	for lines := bufio.NewScanner(info); lines.Scan(); {
		var kb int64
		if rest, ok := strings.CutPrefix(lines.Text(), name+":"); ok {
			_, err := fmt.Sscanf(rest, "%d kB", &kb)
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("/proc/meminfo has no %s", name)
}

// freeMemory returns the free memory, with buffers and the page cache. MemAvailable is too
// optimistic: it counts the inodes of open sockets as reclaimable cache.
func freeMemory() (sum int64, err error) {
	for _, name := range []string{"MemFree", "Buffers", "Cached"} {
		n, err := meminfo(name)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// checkMemory returns an error if the machine has too little memory for the run.
func checkMemory(o options) error {
	available, err := freeMemory()
	if err != nil {
		return err
	}
	need := int64(o.connections)*connectionMemory + 2*int64(o.brokers())*processMemory + minFree
	if available < need {
		return fmt.Errorf("%w: %d connections over %d brokers need about %s, but %s are available",
			errMemory, o.connections, o.brokers(), gib(need), gib(available))
	}
	return nil
}

// watchMemory cancels the run if too little memory is free. It returns then, or when ctx is done.
func watchMemory(ctx context.Context, cancel context.CancelCauseFunc, available func() (int64, error)) {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		free, err := available()
		if err == nil && free < minFree {
			err = fmt.Errorf("%w: %s are left", errMemory, gib(free))
		}
		if err != nil {
			cancel(err)
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// kernelLimits describes the kernel's limits, which the run does not change.
func kernelLimits() string {
	var files unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &files) // 0 means unknown
	text := fmt.Sprintf("%s descriptors a process", report.Thousands(int64(min(files.Cur, 1<<40))))
	for _, name := range []string{"net.core.somaxconn", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_mem", "kernel.threads-max"} {
		value, err := os.ReadFile("/proc/sys/" + strings.ReplaceAll(name, ".", "/"))
		if err != nil {
			continue // some are hidden inside a network namespace
		}
		text += fmt.Sprintf(", %s %s", name, strings.Join(strings.Fields(string(value)), " "))
	}
	return text
}
