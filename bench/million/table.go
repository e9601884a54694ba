package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"switchboard/bench/usage"
)

// sample is what is in use at one moment.
type sample struct {
	at                                              time.Time
	brokers, subscribers, redis, everything, kernel int64         // bytes
	brokerCPU, subscriberCPU, redisCPU              time.Duration // since the start
	took                                            time.Duration // of a difference
}

func (r *run) sample() (s sample, err error) {
	s.at = time.Now()
	if s.brokers, s.brokerCPU, err = sum(r.brokers.PIDs()); err != nil {
		return s, err
	}
	var pids []int
	for _, c := range r.crowds {
		pids = append(pids, c.cmd.Process.Pid)
	}
	if s.redis, s.redisCPU, err = sum([]int{r.redis.PID()}); err != nil {
		return s, err
	}
	if s.subscribers, s.subscriberCPU, err = sum(pids); err != nil {
		return s, err
	}
	if s.everything, err = inUse(); err != nil {
		return s, err
	}
	s.kernel, err = meminfo("Slab")
	return s, err
}

func sum(pids []int) (size int64, cpu time.Duration, err error) {
	for _, pid := range pids {
		n, err := usage.Resident(pid)
		if err != nil {
			return 0, 0, err
		}
		d, err := usage.CPU(pid)
		if err != nil {
			return 0, 0, err
		}
		size, cpu = size+n, cpu+d
	}
	return size, cpu, nil
}

// inUse is the machine's memory that somebody holds, the kernel among them.
func inUse() (int64, error) {
	total, err := meminfo("MemTotal")
	if err != nil {
		return 0, err
	}
	rest, err := unused()
	return total - rest, err
}

func gib(b int64) string { return fmt.Sprintf("%.2f GiB", float64(b)/(1<<30)) }

// table prints the samples taken with nobody connected, with all, and behind the pushes.
func table(out io.Writer, o options, brokers int, s [3]sample, pushes []time.Duration) {
	empty, full := s[0], s[1]
	n := int64(o.connections)
	each := func(b int64) string { return fmt.Sprintf("%.2f KB", float64(b)/1000/float64(n)) }
	fmt.Fprintf(out, "# %s connections on one machine\n\n", thousands(n))
	fmt.Fprintf(out, "Written by `make bench-million`, %s. [What is measured, and how](million/main.go).\n\n", time.Now().UTC().Format(time.DateOnly))
	fmt.Fprintf(out, "In short: %s connections (%s), %d brokers, one Redis; one push reaches all of them, each exactly once, within %v, for %s a connection on the whole machine, both ends of it.\n\n",
		thousands(n), o.transport, brokers, middle(pushes).Round(time.Millisecond), each(full.everything-empty.everything))
	fmt.Fprintf(out, "%d cores; as many processes of subscribers as brokers. The kernel, as it was: %s.\n\n", runtime.NumCPU(), limits())
	fmt.Fprint(out, "| memory | in all | grown with the connections | per connection |\n|---|---|---|---|\n")
	for _, row := range []struct {
		name         string
		empty, whole int64
	}{
		{"brokers, RSS", empty.brokers, full.brokers},
		{"Redis, RSS", empty.redis, full.redis},
		{"subscribers, RSS", empty.subscribers, full.subscribers},
		{"kernel: sockets, files, epoll (slabs)", empty.kernel, full.kernel},
		{"the machine, all of it", empty.everything, full.everything},
	} {
		fmt.Fprintf(out, "| %s | %s | %s | %s |\n", row.name, gib(row.whole), gib(row.whole-row.empty), each(row.whole-row.empty))
	}
	costs(out, n, s, pushes)
}

// costs prints times.
func costs(out io.Writer, n int64, s [3]sample, pushes []time.Duration) {
	opened, pushed := s[1].since(s[0]), s[2].since(s[1])
	fmt.Fprint(out, "\n| | time | CPU of the brokers | of Redis | of the subscribers |\n|---|---|---|---|---|\n")
	line := func(what, elapsed string, spent sample, n int64, show func(time.Duration) string) {
		cost := func(d time.Duration) string { return show(d / time.Duration(n)) }
		fmt.Fprintf(out, "| %s | %s | %s | %s | %s |\n", what, elapsed, cost(spent.brokerCPU), cost(spent.redisCPU), cost(spent.subscriberCPU))
	}
	micros := func(d time.Duration) string { return fmt.Sprintf("%.2f µs", float64(d)/float64(time.Microsecond)) }
	whole := func(d time.Duration) string { return d.Round(10 * time.Millisecond).String() }
	line("all connect and subscribe", whole(opened.took), opened, 1, whole)
	line("each of them", micros(opened.took/time.Duration(n)), opened, n, micros)
	line("a push to all", whole(middle(pushes))+" (median)", pushed, int64(len(pushes)), whole)
	line("each delivery", micros(middle(pushes)/time.Duration(n)), pushed, n*int64(len(pushes)), micros)
	var all []string
	for _, d := range pushes {
		all = append(all, d.Round(time.Millisecond).String())
	}
	fmt.Fprintf(out, "\nFrom a push until the last of all has it: %s.\n", strings.Join(all, ", "))
}

// since is what was spent between two samples.
func (s sample) since(before sample) sample {
	s.took = s.at.Sub(before.at)
	s.brokerCPU, s.subscriberCPU, s.redisCPU = s.brokerCPU-before.brokerCPU, s.subscriberCPU-before.subscriberCPU, s.redisCPU-before.redisCPU
	return s
}

// middle is the median.
func middle(times []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(times))[len(times)/2]
}

// thousands is n with commas.
func thousands(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
