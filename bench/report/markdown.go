package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// markdown writes the report. plots are the files of the scenarios, relative to it, million what that run found.
func markdown(w io.Writer, r Run, plots map[string][]plot, million string) {
	p := func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }
	p("# Beside its peers\n")
	p("Written by `make bench`. Commit %s, %s, %s, Redis %s, on %s. %s, %s.\n",
		r.Commit, r.Date, r.Go, r.Redis, r.Machine, plural(r.Rounds, "round"), r.Took.Round(time.Second))
	if r.Quick {
		p("%s\n", quickNote)
	}
	if len(r.Stolen) > 0 {
		p("The machine's host took %s %% of its processors meanwhile, round by round: the more, the dearer everything is.\n", r.stolen())
	}
	p("%s\n", method)
	p("## Targets\n")
	var rows [][]string
	for _, v := range r.judge() {
		rows = append(rows, v.cells())
	}
	grid(w, targetHead, rows)
	p("\nRatios are taken round by round; the figure itself stands in parentheses. A curve is flat when its last point is at most %g times its first.", flat)
	if million == "" {
		million = "it was not measured."
	} else {
		million += " [All figures](MILLION.md)."
	}
	p("A million connections are a run of their own, `make bench-million`: %s\n", million)
	lost(w, r)
	for _, s := range r.known() {
		section(w, r, s, plots[s.id])
	}
	invalid(w, r)
	configured(w, r)
}

// lost tells where peers are better, like beside like first, and which targets were missed.
func lost(w io.Writer, r Run) {
	fmt.Fprint(w, "## Where we lose\n\n")
	like, unlike := r.losses()
	if len(like)+len(unlike)+len(r.missed()) == 0 {
		fmt.Fprint(w, "Nowhere in this run.\n\n")
	}
	for _, group := range []struct {
		head  string
		texts []string
	}{
		{"Both keep their messages in memory, or both in Redis:", like},
		{"One keeps its messages in Redis and the other in the memory of one process:", unlike},
		{"Targets missed:", r.missed()},
	} {
		if len(group.texts) == 0 {
			continue
		}
		fmt.Fprintf(w, "%s\n\n", group.head)
		for _, text := range group.texts {
			fmt.Fprintf(w, "- %s\n", text)
		}
		fmt.Fprintln(w)
	}
}

// stolen is what the host took in each round.
func (r Run) stolen() string {
	var all []string
	for _, percent := range r.Stolen {
		all = append(all, fmt.Sprintf("%.1f", percent))
	}
	return strings.Join(all, ", ")
}

const method = "Each figure is the median over the rounds, with [least – most]. In a round every system is measured in turn, started anew each time, " +
	"server, load generator and Redis sharing the machine; so CPU time of the server's processes is the figure to compare, and " +
	"throughput depends on the generator's share as well. Every delivery is checked: a measurement with a message lost, repeated, changed or " +
	"out of order does not count. KB are 1,000 bytes. “Memory” in a name: the messages are in the memory of that one process, as those of " +
	"nchan and mosquitto are; the other systems use Redis. “× ours” is to the row of ours that keeps its messages in the same kind of place. " +
	"[What is measured, and how](suite/doc.go)."

// section is one scenario.
func section(w io.Writer, r Run, s scenario, plots []plot) {
	fmt.Fprintf(w, "## %s\n\n", s.title)
	if s.text != "" {
		fmt.Fprintf(w, "%s\n\n", s.text)
	}
	for _, pl := range plots {
		fmt.Fprintf(w, "![%s](%s)\n\n", pl.title, pl.file)
	}
	rows := r.rows(s)
	if s.curve == nil {
		grid(w, rows[0], rows[1:])
		fmt.Fprintln(w)
		return
	}
	for len(rows) > 0 { // a table for each metric
		n := len(r.xs(s.id, s.metrics[0].id)) + 1
		grid(w, rows[0], rows[1:n])
		fmt.Fprintln(w)
		rows, s.metrics = rows[n:], s.metrics[1:]
	}
}

// invalid lists what did not count.
func invalid(w io.Writer, r Run) {
	fmt.Fprint(w, "## What did not count\n\n")
	for _, text := range r.Invalid {
		fmt.Fprintf(w, "- %s\n", strings.Join(strings.Fields(text), " "))
	}
	if len(r.Invalid) == 0 {
		fmt.Fprintln(w, "Every measurement counted.")
	}
	fmt.Fprintln(w)
}

// configured says what was measured.
func configured(w io.Writer, r Run) {
	fmt.Fprint(w, "## How each was configured\n\n")
	var rows [][]string
	names := maps.Clone(r.Notes)
	if names == nil {
		names = map[string]string{}
	}
	for name := range r.Versions {
		names[name] += ""
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		rows = append(rows, []string{name, r.Versions[name], r.Notes[name]})
	}
	grid(w, []string{"system", "version", "configuration"}, rows)
}

// grid is a table.
func grid(w io.Writer, head []string, rows [][]string) {
	line := func(cells []string) {
		for _, c := range cells {
			c = strings.Join(strings.Fields(c), " ")
			fmt.Fprintf(w, "| %s ", strings.ReplaceAll(c, "|", `\|`))
		}
		fmt.Fprintln(w, "|")
	}
	line(head)
	fmt.Fprintln(w, strings.Repeat("|---", len(head))+"|")
	for _, row := range rows {
		line(row)
	}
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
