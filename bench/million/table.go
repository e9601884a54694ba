package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"switchboard/bench/report"
	"switchboard/bench/usage"
)

// sample holds memory and CPU usage at one moment.
type sample struct {
	at                                           time.Time
	brokers, subscribers, redis, machine, kernel int64         // bytes
	brokerCPU, subscriberCPU, redisCPU           time.Duration // since the start
	elapsed                                      time.Duration // only in a difference of two samples
}

func (r *run) sample() (s sample, err error) {
	s.at = time.Now()
	if s.brokers, s.brokerCPU, err = usageOf(r.brokers.PIDs()); err != nil {
		return s, err
	}
	var pids []int
	for _, sp := range r.processes {
		pids = append(pids, sp.cmd.Process.Pid)
	}
	if s.redis, s.redisCPU, err = usageOf([]int{r.redis.PID()}); err != nil {
		return s, err
	}
	if s.subscribers, s.subscriberCPU, err = usageOf(pids); err != nil {
		return s, err
	}
	if s.machine, err = usedMemory(); err != nil {
		return s, err
	}
	s.kernel, err = meminfo("Slab")
	return s, err
}

func usageOf(pids []int) (size int64, cpu time.Duration, err error) {
	if size, err = usage.Resident(pids...); err != nil {
		return 0, 0, err
	}
	cpu, err = usage.CPU(pids...)
	return size, cpu, err
}

// usedMemory returns the memory in use on the machine, including the kernel's.
func usedMemory() (int64, error) {
	total, err := meminfo("MemTotal")
	if err != nil {
		return 0, err
	}
	free, err := freeMemory()
	return total - free, err
}

func gib(b int64) string { return fmt.Sprintf("%.2f GiB", float64(b)/(1<<30)) }

// printTables prints the samples taken without connections, with all connections, and after the
// pushes.
func printTables(out io.Writer, o options, brokers int, s [3]sample, pushes []time.Duration) {
	empty, full := s[0], s[1]
	n := int64(o.connections)
	each := func(b int64) string { return fmt.Sprintf("%.2f KB", float64(b)/1000/float64(n)) }
	fmt.Fprintf(out, "# %s connections on one machine\n\n", report.Thousands(n))
	fmt.Fprintf(out, "Written by `make bench-million`, %s. [What is measured and how](million/main.go).\n\n", time.Now().UTC().Format(time.DateOnly))
	fmt.Fprintf(out, "In short: %s connections (%s), %d brokers, one Redis. A push reaches each of them exactly once within %v (median). A connection costs %s of the machine's memory, both ends included.\n\n",
		report.Thousands(n), o.transport, brokers, median(pushes).Round(time.Millisecond), each(full.machine-empty.machine))
	fmt.Fprintf(out, "%d cores; one subscriber process for each broker. Kernel limits: %s.\n\n", runtime.NumCPU(), kernelLimits())
	fmt.Fprint(out, "| memory | total | growth with the connections | per connection |\n|---|---|---|---|\n")
	for _, row := range []struct {
		name        string
		empty, full int64
	}{
		{"brokers, RSS", empty.brokers, full.brokers},
		{"Redis, RSS", empty.redis, full.redis},
		{"subscribers, RSS", empty.subscribers, full.subscribers},
		{"kernel: sockets, files, epoll (slabs)", empty.kernel, full.kernel},
		{"whole machine", empty.machine, full.machine},
	} {
		fmt.Fprintf(out, "| %s | %s | %s | %s |\n", row.name, gib(row.full), gib(row.full-row.empty), each(row.full-row.empty))
	}
	printTimes(out, n, s, pushes)
}

// printTimes prints the durations and the CPU times.
func printTimes(out io.Writer, n int64, s [3]sample, pushes []time.Duration) {
	opened, pushed := s[1].since(s[0]), s[2].since(s[1])
	fmt.Fprint(out, "\n| | time | CPU of the brokers | of Redis | of the subscribers |\n|---|---|---|---|---|\n")
	line := func(work, elapsed string, used sample, n int64, show func(time.Duration) string) {
		per := func(d time.Duration) string { return show(d / time.Duration(n)) }
		fmt.Fprintf(out, "| %s | %s | %s | %s | %s |\n", work, elapsed, per(used.brokerCPU), per(used.redisCPU), per(used.subscriberCPU))
	}
	micros := func(d time.Duration) string { return fmt.Sprintf("%.2f µs", float64(d)/float64(time.Microsecond)) }
	rounded := func(d time.Duration) string { return d.Round(10 * time.Millisecond).String() }
	line("connect and subscribe, all", rounded(opened.elapsed), opened, 1, rounded)
	line("connect and subscribe, each", micros(opened.elapsed/time.Duration(n)), opened, n, micros)
	line("push to all", rounded(median(pushes))+" (median)", pushed, int64(len(pushes)), rounded)
	line("delivery, each", micros(median(pushes)/time.Duration(n)), pushed, n*int64(len(pushes)), micros)
	var all []string
	for _, d := range pushes {
		all = append(all, d.Round(time.Millisecond).String())
	}
	fmt.Fprintf(out, "\nTime from each push until all subscribers have received it: %s.\n", strings.Join(all, ", "))
}

// since returns the time and the CPU usage between two samples.
func (s sample) since(before sample) sample {
	s.elapsed = s.at.Sub(before.at)
	s.brokerCPU, s.subscriberCPU, s.redisCPU = s.brokerCPU-before.brokerCPU, s.subscriberCPU-before.subscriberCPU, s.redisCPU-before.redisCPU
	return s
}

// median returns the median of the times.
func median(times []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(times))[len(times)/2]
}
