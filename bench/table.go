package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// printTable prints the result as tables.
func (r result) printTable(to io.Writer) {
	fmt.Fprintf(to, "%d connections over %s, %d channels, %d publishers, payload %d bytes, store: %s; %d CPUs, load before %s\n\n",
		r.Connections, r.Transport, r.Channels, r.Publishers, r.Size, r.Store, r.CPUs, r.LoadBefore)
	w := tabwriter.NewWriter(to, 0, 0, 3, ' ', 0)
	if s := r.Setup; s != nil {
		fmt.Fprintf(w, "connect\t%.1f s, server CPU %.1f µs each%s\n", s.Seconds, s.CPUPerConnect, unlessZero(", Redis CPU %.1f µs", s.RedisCPU))
	}
	if m := r.Memory; m != nil {
		fmt.Fprintf(w, "idle connection\t%.2f KiB resident%s\n", m.PerConnection/1024, textIf(!m.Settled, " (was still changing)"))
		if m.Go != nil {
			fmt.Fprintf(w, "\t%.2f KiB Go heap, %.2f KiB stacks, after a collection\n", m.Go.HeapPerConnection/1024, m.Go.StacksPerConnection/1024)
		}
	}
	if r.Floor != nil {
		fmt.Fprintf(w, "floor\t%.2f µs CPU per write(2)\n", r.Floor.CPUPerWrite)
	}
	_ = w.Flush() // errors of the output are ignored
	if len(r.Phases) > 0 {
		r.printPhases(to)
	}
	r.printVerdict(to)
}

func (r result) printPhases(to io.Writer) {
	w := tabwriter.NewWriter(to, 0, 0, 3, ' ', tabwriter.AlignRight)
	row := func(name, format string, value func(p phaseResult) any) {
		fmt.Fprint(w, name, "\t")
		for _, p := range r.Phases {
			fmt.Fprintf(w, format+"\t", value(p))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(to)
	row("", "%v", func(p phaseResult) any { return p.Name })
	row("pushes", "%d", func(p phaseResult) any { return p.Pushes })
	row("deliveries", "%d", func(p phaseResult) any { return p.Deliveries })
	row("deliveries/s", "%.0f", func(p phaseResult) any { return float64(p.Deliveries) / p.Seconds })
	row("messages per read", "%.1f", func(p phaseResult) any { return p.PerRead })
	row("server CPU per delivery, µs", "%.2f", func(p phaseResult) any { return p.CPUPerDelivery })
	if r.Floor != nil {
		row("multiple of the floor", "%.2f", func(p phaseResult) any { return p.FloorRatio })
	}
	row("server CPU per push, µs", "%.0f", func(p phaseResult) any { return p.CPUPerPush })
	if r.Store == "redis" {
		row("Redis CPU per push, µs", "%.0f", func(p phaseResult) any { return p.RedisCPU })
	}
	row("load generator's CPU per delivery, µs", "%.2f", func(p phaseResult) any { return p.BenchCPU })
	_ = w.Flush()
}

func (r result) printVerdict(to io.Writer) {
	if r.Valid {
		fmt.Fprintln(to, "\nevery message reached every subscriber exactly once, in order")
		return
	}
	fmt.Fprintln(to, "\nTHIS RUN DOES NOT COUNT")
	if r.Error != "" {
		fmt.Fprintln(to, r.Error)
	}
	for _, f := range r.Faults {
		fmt.Fprintln(to, "-", f)
	}
	if more := r.Wrong - len(r.Faults); more > 0 {
		fmt.Fprintf(to, "- and %d more\n", more)
	}
}

func unlessZero(format string, v float64) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf(format, v)
}

func textIf(condition bool, text string) string {
	if condition {
		return text
	}
	return ""
}
