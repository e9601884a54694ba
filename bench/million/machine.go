package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// connectionNeeds is the memory of a connection: 9.6 KB the kernel's for both ends, the rest that of broker, Redis
	// and subscriber.
	connectionNeeds = 13 << 10
	// processNeeds is that of a broker, and of a process of subscribers, with nobody connected.
	processNeeds = 20 << 20
	// reserve is what must stay free: below it the run ends.
	reserve = 1 << 30
	// watchEvery is how often that is looked at.
	watchEvery = 500 * time.Millisecond
)

var errMemory = errors.New("the memory does not suffice")

// meminfo is a line of /proc/meminfo in bytes.
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
	return 0, fmt.Errorf("/proc/meminfo does not tell %s", name)
}

// unused is the memory that nobody holds: free, or files that can be read again. MemAvailable would be too much: it
// takes the inodes of open sockets for a cache that can be given back.
func unused() (sum int64, err error) {
	for _, name := range []string{"MemFree", "Buffers", "Cached"} {
		n, err := meminfo(name)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// room refuses what the machine has no memory for.
func room(o options) error {
	available, err := unused()
	if err != nil {
		return err
	}
	need := int64(o.connections)*connectionNeeds + 2*int64(o.brokers())*processNeeds + reserve
	if available < need {
		return fmt.Errorf("%w: %d connections over %d brokers take about %s, and %s are available",
			errMemory, o.connections, o.brokers(), gib(need), gib(available))
	}
	return nil
}

// watch cancels when little memory is left, until ctx ends.
func watch(ctx context.Context, cancel context.CancelCauseFunc, available func() (int64, error)) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		free, err := available()
		if err == nil && free < reserve {
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

// limits says what the kernel allows; nothing of it was set for the run.
func limits() string {
	var files unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &files) // 0 tells that it is unknown
	text := fmt.Sprintf("%s descriptors a process", thousands(int64(min(files.Cur, 1<<40))))
	for _, name := range []string{"net.core.somaxconn", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_mem", "kernel.threads-max"} {
		value, err := os.ReadFile("/proc/sys/" + strings.ReplaceAll(name, ".", "/"))
		if err != nil {
			continue // inside a network namespace some are hidden
		}
		text += fmt.Sprintf(", %s %s", name, strings.Join(strings.Fields(string(value)), " "))
	}
	return text
}
