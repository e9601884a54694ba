package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	plots "switchboard/bench/report"
)

// centrifugeName is idleResult.System of the nodes of centrifuge.
const centrifugeName = "centrifuge"

// result holds the figures of one case. All but the last are numbers of commands.
type result struct {
	Clients        int   `json:"clients"`
	Watching       bool  `json:"watching"`    // each client watches a state, a roster and a user
	Quiet          int64 `json:"quiet"`       // in 14 s
	Kill           int64 `json:"kill"`        // in 14 s
	LastCheck      int64 `json:"last_check"`  // in 6 s after the killed broker is no longer listed
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
	Date       string           `json:"date"`
	Results    []result         `json:"results"`
	Failovers  []failoverResult `json:"failovers"`
	Restarts   *restartResult   `json:"restarts,omitempty"`
	Hints      []hintsResult    `json:"hints,omitempty"`
	Pushes     []pushesResult   `json:"pushes,omitempty"`
	Idle       []idleResult     `json:"idle"`
	Centrifuge []result         `json:"centrifuge,omitempty"`
}

// The keys order the results of a kind, and those of the same case have the same one.

func (r result) key() string { return fmt.Sprintf("%t %9d", r.Watching, r.Clients) }

func (r failoverResult) key() string { return fmt.Sprintf("%9d %s", r.Clients, r.Store) }

func (r hintsResult) key() string { return fmt.Sprintf("%9d", r.Clients) }

func (r idleResult) key() string { return fmt.Sprintf("%t %t %9d", r.System == "", r.Kit, r.Brokers) }

// merge returns the results of two lists in order. Those of the second are in place of those of the
// same cases.
func merge[T interface{ key() string }](list, more []T) []T {
	byKey := map[string]T{}
	for _, one := range slices.Concat(list, more) {
		byKey[one.key()] = one
	}
	var merged []T
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		merged = append(merged, byKey[key])
	}
	return merged
}

// with returns the report with the results of a later run.
func (r report) with(later report) report {
	r.Date = later.Date
	r.Results = merge(r.Results, later.Results)
	r.Failovers = merge(r.Failovers, later.Failovers)
	r.Hints = merge(r.Hints, later.Hints)
	r.Idle = merge(r.Idle, later.Idle)
	r.Centrifuge = merge(r.Centrifuge, later.Centrifuge)
	r.Restarts = cmp.Or(later.Restarts, r.Restarts)
	if len(later.Pushes) > 0 {
		r.Pushes = later.Pushes
	}
	return r
}

// readReport reads report.json of an earlier run in a directory, if there is one.
func readReport(dir string) (r report, err error) {
	data, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	return r, err
}

// write writes REPORT.md, report.json and the plot into a directory.
func (r report) write(dir string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(
		os.MkdirAll(filepath.Join(dir, filepath.Dir(plotFile)), 0o755),
		os.WriteFile(filepath.Join(dir, "REPORT.md"), r.markdown(), 0o644),
		os.WriteFile(filepath.Join(dir, "report.json"), append(data, '\n'), 0o644),
		os.WriteFile(filepath.Join(dir, plotFile), r.plot(), 0o644),
	)
}

// markdown returns the text of REPORT.md.
func (r report) markdown() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# What a failure costs\n\nWritten by `make bench-failures`; the last of its cases were measured on %s. [What is measured, and how](main.go).\n\n", r.Date)
	r.writeFailures(&b)
	r.writeFailovers(&b)
	r.writeRestarts(&b)
	r.writeHints(&b)
	r.writePushes(&b)
	r.writeIdle(&b)
	r.writeComparison(&b, "")
	return b.Bytes()
}

// writeFailures writes the table of the cases with clients, if there are any.
func (r report) writeFailures(b *bytes.Buffer) {
	if len(r.Results) == 0 {
		return
	}
	b.WriteString("All clients are connected to one broker. Each is a user and has a channel of its own. *Watching*: the channel has a state, and the client watches the " +
		"state, who is in the channel, and another user. Another broker without clients is killed, starts and ends. Each figure is the number of commands that Redis " +
		"executes in the window, those inside scripts and those of a quiet system included; in parentheses for each client. Renewals of bindings are not among " +
		"them: up to eight commands for each client in 30 minutes, whatever fails.\n\n")
	b.WriteString("| clients | quiet, 14 s | `kill -9`, 14 s | when the janitor has removed the killed broker, 6 s | start, 8 s | planned end, 8 s | " +
		"`kill -9` of the broker that stores half of 2,000 pushes a second, 14 s, without the pushes | " +
		"Redis stops for 5 s, and 14 s after that | readings of everything |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, c := range r.Results {
		fmt.Fprintf(b, "| %s%s |", plots.Thousands(int64(c.Clients)), c.suffix())
		for _, n := range []int64{c.Quiet, c.Kill, c.LastCheck, c.Start, c.End, c.KillPusher, c.Frozen} {
			if n == 0 { // by a run that did not measure it
				b.WriteString(" – |")
				continue
			}
			fmt.Fprintf(b, " %s (%.1f) |", plots.Thousands(n), float64(n)/float64(c.Clients))
		}
		fmt.Fprintf(b, " %d |\n", c.FrozenReadings)
	}
}

func (r report) writeFailovers(b *bytes.Buffer) {
	if len(r.Failovers) == 0 {
		return
	}
	b.WriteString("\nA master is killed, and its replica takes over: the only one under Sentinel, or one of the three of a Cluster. " +
		"*The broker's own lists*: it is the master that has the lists of the broker's channels and clients. In the other rows it is another one. " +
		"*Two masters*: the second one is killed as soon as the broker binds again because of the first. All clients are connected to one broker, each with a channel of its own. " +
		"Commands in 20 s, without those of a quiet system; in parentheses for each client.\n\n" +
		"| store, clients | the new masters | the other masters | failed commands there | comparisons of bindings |\n|---|---|---|---|---|\n")
	for _, f := range r.Failovers {
		fmt.Fprintf(b, "| %s, %s | %s (%.1f) | %s | %d | %d |\n",
			f.Store, plots.Thousands(int64(f.Clients)), plots.Thousands(f.Replaced), float64(f.Replaced)/float64(f.Clients), plots.Thousands(f.Others), f.Errors, f.Rebinds)
	}
}

func (r report) writeRestarts(b *bytes.Buffer) {
	s := r.Restarts
	if s == nil {
		return
	}
	fmt.Fprintf(b, "\n%d brokers in one process, with links and WebSockets in memory, one Redis, and %s clients, each with a channel of its own. "+
		"%d of the brokers restart, one after the other, and their clients come back to them. "+
		"The beats of all brokers are subtracted, and so are the commands of the same restart of a broker that has no others.\n\n"+
		"| for all restarts | |\n|---|---|\n| readings of everything by the other brokers | %d |\n| comparisons of everything by the other brokers | %d |\n"+
		"| commands for one other broker and restart | %.1f; at most %.1f |\n"+
		"| subtracted: commands of a restart for each of its clients, and of the beats a second | %.1f; %.0f |\n",
		s.Brokers, plots.Thousands(int64(s.Clients)), s.Restarts, s.Readings, s.Comparisons, s.PerBroker, s.MostBroker, s.PerClient, s.Beats)
}

func (r report) writeHints(b *bytes.Buffer) {
	if len(r.Hints) == 0 {
		return
	}
	fmt.Fprintf(b, "\nA proxy drops all bytes from one broker to the broker with the clients for 10 s. Meanwhile the first one stores %d messages a second.\n\n"+
		"| clients | a message is late, median | at most | median without drops | commands a second for each client, without the pushes |\n|---|---|---|---|---|\n", hintPushes)
	for _, h := range r.Hints {
		fmt.Fprintf(b, "| %s | %.0f ms | %.0f ms | %.1f ms | %.1f |\n", plots.Thousands(int64(h.Clients)), h.LateP50, h.LateMost, h.BeforeP50, h.PerClient)
	}
}

func (r report) writePushes(b *bytes.Buffer) {
	if len(r.Pushes) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%d pushes a second to the channels of the clients, from when a push is due until it is acknowledged, before a failure and in the 14 s after it. "+
		"The pushes of the first row go through the two other brokers. Those of the others go to the healthy masters, while the broker is also asked to push to the third.\n\n"+
		"| failure | clients | p50 before | p99 before | p50 | p99 | ratio of p99 | failed pushes |\n|---|---|---|---|---|---|---|---|\n", pushRate)
	for _, p := range r.Pushes {
		fmt.Fprintf(b, "| %s | %s | %.1f ms | %.1f ms | %.1f ms | %.1f ms | %.2f | %d |\n",
			p.Failure, plots.Thousands(int64(p.Clients)), p.BeforeP50, p.BeforeP99, p.P50, p.P99, p.Ratio, p.Failed)
	}
}

func (r report) writeIdle(b *bytes.Buffer) {
	if len(r.Idle) == 0 {
		return
	}
	b.WriteString("\nBrokers without clients, which renew their leases every 2 s, and no janitor:\n\n| brokers | commands a second | for one broker in 2 s |\n|---|---|---|\n")
	for _, i := range r.Idle {
		suffix := ""
		if i.Kit {
			suffix = ", with the whole kit"
		}
		if i.System != "" {
			suffix += " nodes of " + i.System
		}
		fmt.Fprintf(b, "| %d%s | %.0f | %.1f |\n", i.Brokers, suffix, i.PerSecond, i.PerBeat)
	}
}
