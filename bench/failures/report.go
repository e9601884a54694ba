package main

import (
	"bytes"
	"fmt"
)

// result holds the figures of one case. All but the last are numbers of commands.
type result struct {
	Clients        int   `json:"clients"`
	Watching       bool  `json:"watching"`    // each client watches a state, a roster and a user
	Quiet          int64 `json:"quiet"`       // in 14 s
	Kill           int64 `json:"kill"`        // in 14 s
	Start          int64 `json:"start"`       // in 8 s
	End            int64 `json:"end"`         // in 8 s
	KillPusher     int64 `json:"kill_pusher"` // in 14 s, without those of the pushes
	Frozen         int64 `json:"frozen"`      // in 5 s and 14 s after that
	FrozenReadings int64 `json:"frozen_readings"`
}

func (r result) suffix() string {
	if r.Watching {
		return ", watching"
	}
	return ""
}

// report is the content of report.json.
type report struct {
	Date      string           `json:"date"`
	Results   []result         `json:"results"`
	Failovers []failoverResult `json:"failovers"`
	Idle      []idleResult     `json:"idle"`
}

// markdown returns the text of REPORT.md.
func (r report) markdown() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# What a failure costs\n\nWritten by `make bench-failures`, %s. [What is measured, and how](main.go).\n\n", r.Date)
	r.writeFailures(&b)
	if len(r.Failovers) > 0 {
		b.WriteString("\nA master is killed, and its replica takes over: the only one under Sentinel, or one of the three of a Cluster. All clients are connected to one broker, each with a channel of its own. " +
			"Commands in 20 s, without those of a quiet system; in parentheses for each client.\n\n| store, clients | the new master | both other masters | comparisons of bindings |\n|---|---|---|---|\n")
	}
	for _, f := range r.Failovers {
		fmt.Fprintf(&b, "| %s, %s | %s (%.1f) | %s | %d |\n", f.Store, thousands(int64(f.Clients)), thousands(f.Replaced), float64(f.Replaced)/float64(f.Clients), thousands(f.Others), f.Rebinds)
	}
	if len(r.Idle) > 0 {
		b.WriteString("\nBrokers without clients, which renew their leases every 2 s, and no janitor:\n\n| brokers | commands a second | for one broker and beat |\n|---|---|---|\n")
	}
	for _, i := range r.Idle {
		suffix := ""
		if i.Kit {
			suffix = ", with the whole kit"
		}
		fmt.Fprintf(&b, "| %d%s | %.0f | %.1f |\n", i.Brokers, suffix, i.PerSecond, i.PerBeat)
	}
	return b.Bytes()
}

// writeFailures writes the table of the cases with clients, if there are any.
func (r report) writeFailures(b *bytes.Buffer) {
	if len(r.Results) == 0 {
		return
	}
	b.WriteString("All clients are connected to one broker. Each is a user and has a channel of its own. *Watching*: the channel has a state, and the client watches the " +
		"state, who is in the channel, and another user. Another broker without clients starts, ends and is killed. Each figure is the number of commands that Redis " +
		"executes in the window, those inside scripts and those of a quiet system included; in parentheses for each client.\n\n")
	b.WriteString("| clients | quiet, 14 s | `kill -9`, 14 s | start, 8 s | planned end, 8 s | `kill -9` of the broker that stores half of 2,000 pushes a second, 14 s, without the pushes | " +
		"Redis stops for 5 s, and 14 s after that | readings of everything |\n|---|---|---|---|---|---|---|---|\n")
	for _, c := range r.Results {
		fmt.Fprintf(b, "| %s%s |", thousands(int64(c.Clients)), c.suffix())
		for _, n := range []int64{c.Quiet, c.Kill, c.Start, c.End, c.KillPusher, c.Frozen} {
			fmt.Fprintf(b, " %s (%.1f) |", thousands(n), float64(n)/float64(c.Clients))
		}
		fmt.Fprintf(b, " %d |\n", c.FrozenReadings)
	}
}

// thousands formats n with commas.
func thousands(n int64) string {
	switch {
	case n < 0:
		return "-" + thousands(-n)
	case n < 1000:
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
